//! What the commit of a write says.

use super::WriteRequest;
use crate::git::Person;

/// Returns whose change it is: the client's, under its own name.
pub(super) fn author(request: &WriteRequest, committer: &Person) -> Person {
    let Some(actor) = &request.actor else { return committer.clone() };
    let name: String = actor.chars().filter(|it| !it.is_control() && !"<>".contains(*it)).collect();
    let local: String = name
        .chars()
        .map(|it| if it.is_ascii_alphanumeric() || ".-_".contains(it) { it } else { '-' })
        .collect();
    let host = committer.email.rsplit_once('@').map_or("localhost", |(_, host)| host);
    if name.trim().is_empty() {
        return committer.clone();
    }
    Person { name, email: format!("{local}@{host}") }
}

/// Returns the message: what changes, who asked for it and how, and the trailers.
pub(super) fn text(request: &WriteRequest, subject: &str, trailers: &[String]) -> String {
    let subject: String =
        subject.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    let actor = request.actor.as_deref().unwrap_or("an unnamed client");
    let mut text = format!("{subject}\n\nThrough the classifier API, by {actor}.\n\n");
    let own = [format!("Clade-Request: {}", request.line), format!("Clade-Actor: {actor}")];
    for line in own.iter().chain(trailers) {
        text.extend(line.chars().filter(|it| !it.is_control()));
        text.push('\n');
    }
    text
}
