//! The query of a request.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;

use jiff::Timestamp;
use percent_encoding::percent_decode_str;

use super::error::ApiError;

/// The parameters of a request's query.
#[derive(Debug)]
pub(super) struct Parameters(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        if parts.uri.query().is_none_or(str::is_empty) {
            return Ok(Self(Vec::new()));
        }
        let read = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let query = parts.uri.query().unwrap_or_default();
        // The reader puts a replacement character where a value is not UTF-8.
        let is_utf8 = percent_decode_str(query).decode_utf8().is_ok();
        match read {
            Ok(Query(parameters)) if is_utf8 => Ok(Self(parameters)),
            _ => {
                let message = format!("The query of your request cannot be read: `{query}`.");
                Err(ApiError::malformed_head(message))
            }
        }
    }
}

impl Parameters {
    /// Returns a parameter; of one that is given twice, the last value.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next_back()
    }

    /// Returns all values of a parameter.
    pub(super) fn all(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().filter(move |(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// Returns a parameter that may be given once.
    pub(super) fn once(&self, name: &str) -> Result<Option<&str>, ApiError> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (Some(_), Some(_)) => {
                let message = format!("The parameter `{name}` is given twice.");
                Err(ApiError::malformed_head(message))
            }
            (value, _) => Ok(value),
        }
    }

    /// Returns whether a switch is on: anything but `0` and `false` turns it on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "0" | "false"))
    }

    /// Returns a number.
    pub(super) fn number(&self, name: &str) -> Result<Option<usize>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        // The parser takes a sign, too.
        let number = text.parse().ok().filter(|_| !text.starts_with('+'));
        number.map(Some).ok_or_else(|| ApiError::malformed_number(name, text))
    }

    /// Returns a count; one that is too large to be written down is as good as all.
    pub(super) fn count(&self, name: &str) -> Result<Option<usize>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) {
            return Err(ApiError::malformed_number(name, text));
        }
        let count = digits.parse().unwrap_or(usize::MAX);
        if count > 0 && text.starts_with('-') {
            return Err(ApiError::illegal_count(name, text));
        }
        Ok(Some(count))
    }

    /// Returns a time as RFC 3339 has it; seconds may be left out.
    pub(super) fn time(&self, name: &str) -> Result<Option<Timestamp>, ApiError> {
        let Some(text) = self.once(name)? else { return Ok(None) };
        // A `+` that the client did not encode arrives as a blank.
        text.replace(' ', "+").parse().map(Some).map_err(|_| {
            ApiError::malformed_head(format!(
                "The parameter `{name}` must be a time such as 2026-10-03T02:10:00Z, not `{text}`."
            ))
        })
    }

    /// Returns the part of a list that `limit` and `offset` ask for.
    pub(super) fn page<T>(&self, list: Vec<T>) -> Result<Vec<T>, ApiError> {
        let offset = self.number("offset")?.unwrap_or(0);
        let limit = self.number("limit")?.unwrap_or(usize::MAX);
        Ok(list.into_iter().skip(offset).take(limit).collect())
    }
}
