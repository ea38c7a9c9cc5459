//! Whether two values read the same.

use serde_json::Value;

/// Returns whether two values are one. `1e3` and `1.0e+3` are one float; `1` and `1.0` are an
/// integer and a float, and Puppet tells them apart.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a.as_str(), b.as_str()),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// `model::same` has the same rule; this module names no other.
fn same_number(a: &str, b: &str) -> bool {
    a == b || float_bits(a).is_some_and(|bits| float_bits(b) == Some(bits))
}

/// Returns the bits of a number that is a float; none if it is too large for one.
pub(super) fn float_bits(number: &str) -> Option<u64> {
    let is_float = number.contains(['.', 'e', 'E']);
    let float = is_float.then(|| number.parse::<f64>().ok()).flatten();
    float.filter(|it| it.is_finite()).map(f64::to_bits)
}
