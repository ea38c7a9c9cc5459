//! The rule language: grammar, evaluation, explanation, translation.

pub mod regex;
