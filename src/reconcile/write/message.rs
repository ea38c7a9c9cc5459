//! The author and message of a write's commit.

use super::request::WriteRequest;
use crate::changeset::Changeset;
use crate::git::Person;

/// Returns the author: the client, under its own name.
pub(super) fn author(actor: Option<&str>, committer: &Person) -> Person {
    let Some(actor) = actor else { return committer.clone() };
    let name: String = one_line(actor).chars().filter(|it| !"<>".contains(*it)).collect();
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
pub(super) fn text(request: &WriteRequest, changeset: &Changeset, trailers: &[String]) -> String {
    let subject = one_line(&changeset.subject);
    let actor = one_line(changeset.actor.as_deref().unwrap_or("an unnamed client"));
    let mut text = format!("{subject}\n\nThrough the classifier API, by {actor}.\n\n");
    let own = [format!("Clade-Request: {}", request.line), format!("Clade-Actor: {actor}")];
    for line in own.iter().chain(trailers) {
        text += &one_line(line);
        text.push('\n');
    }
    text
}

/// Writes a text on one line: a line of its own could pass for a trailer.
fn one_line(text: &str) -> String {
    let breaks = |it: char| it.is_control() || matches!(it, '\u{2028}' | '\u{2029}');
    text.chars().map(|it| if breaks(it) { ' ' } else { it }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changeset::{Operation, WriteOutcome};
    use crate::reconcile::RightsCheck;

    #[test]
    fn a_name_adds_no_line() {
        let request = WriteRequest {
            operation: Operation::Delete { id: crate::model::GroupId::ROOT },
            grants: Vec::new(),
            rights: RightsCheck::default(),
            line: "DELETE /v1/groups/x\nReviewed-by: root".to_owned(),
            fingerprint: String::new(),
        };
        let name = "ci\n\nClade-Actor: root\r\u{85}Signed-off-by: root\u{2028}x";
        let changeset = Changeset {
            subject: "Remove `a\nb`".to_owned(),
            actor: Some(name.to_owned()),
            ..Changeset::unchanged(WriteOutcome::Done)
        };
        let text = text(&request, &changeset, &["Change-Kind: data".to_owned()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 7, "{text}");
        assert_eq!(lines[0], "Remove `a b`");
        assert!(
            lines[2].starts_with("Through the classifier API, by ci  Clade-Actor: root"),
            "{text}"
        );
        for (line, begins) in
            lines[4..].iter().zip(["Clade-Request: DELETE", "Clade-Actor: ci ", "Change-Kind: "])
        {
            assert!(line.starts_with(begins), "{text}");
        }
        let committer = Person { name: "Clade".to_owned(), email: "clade@example.com".to_owned() };
        let author = author(Some(name), &committer);
        assert!(!author.name.contains(['\n', '\r', '\u{85}']), "{author:?}");
    }
}
