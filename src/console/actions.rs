//! Actions of operators: fetch now, pin a commit, follow the branch again.

use axum::Form;
use axum::extract::Path;
use axum::extract::rejection::FormRejection;
use axum::response::Response;
use serde_json::{Value, json};

use super::context::{FormFields, PageError, read_form, redirect};
use super::failure::ErrorPage;
use super::visit::Visit;
use crate::http::AddressRoutes;
use crate::http::types::ErrorKind;

/// How many characters a reason has at most.
const REASON: usize = 500;

/// Takes an action, with the rights of the visitor, and leads to the first page.
pub(super) async fn act(
    visit: Visit,
    Path(action): Path<String>,
    fields: Result<Form<FormFields>, FormRejection>,
) -> Response {
    let taken = match read_form(fields) {
        Ok(fields) => take(&visit, &action, &fields).await,
        Err(trouble) => Err(trouble),
    };
    match taken {
        Ok(()) => redirect(&visit.links().plain("/")),
        Err(trouble) => visit.show(Err::<ErrorPage, _>(trouble)),
    }
}

async fn take(visit: &Visit, action: &str, fields: &FormFields) -> Result<(), PageError> {
    if visit.console.api.address_routes() == AddressRoutes::WithoutActions {
        let message =
            "Actions are taken at the address of `--admin-listen`, which has the same pages.";
        return Err(PageError::Refused(ErrorKind::PermissionDenied, message.to_owned()));
    }
    let field = |name: &str| fields.get(name).map(|it| it.trim()).unwrap_or_default();
    visit.check_form(field("form_token"))?;
    let reason: String = field("reason").chars().take(REASON).collect();
    if reason.is_empty() && action != "reconcile" {
        let message = "Say why: the reason goes to the journal.";
        return Err(PageError::Refused(ErrorKind::MalformedRequest, message.to_owned()));
    }
    let body = match action {
        "reconcile" => json!({"reason": reason}),
        "pin" => json!({"commit": field("commit"), "reason": reason}),
        "resume" => json!({"reason": reason}),
        _ => return Err(PageError::NotFound(format!("There is no action `{action}`."))),
    };
    let _done: Value = visit.post(&format!("/controller/{action}"), &body).await?;
    Ok(())
}
