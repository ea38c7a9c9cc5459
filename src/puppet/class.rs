//! The headers of classes, and type aliases.

use serde_json::Value;

use super::lex::{Lexeme, Sort, lex};
use super::literal::literal;
use super::{CodeFault, DataType};

/// What a file of Puppet code declares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Code {
    /// The classes, in order.
    pub classes: Vec<PuppetClass>,
    /// The type aliases with what they stand for.
    pub aliases: Vec<(String, DataType)>,
}

/// The header of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct PuppetClass {
    /// The whole name, without a leading `::`.
    pub name: String,
    /// The line it starts on, counted from 1.
    pub line: usize,
    /// The parameters, in order.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The declared type; nothing if there is none or it takes more than reading to know it.
    pub data_type: Option<DataType>,
    /// Its default.
    pub default: Default,
}

/// The default of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Default {
    /// It must be set.
    Required,
    /// This value.
    Value(Value),
    /// What this code comes to.
    Code(String),
}

/// Reads a file of Puppet code.
///
/// # Errors
///
/// A fault is returned if a string, comment, heredoc or bracket is not closed, or the header of a
/// class cannot be read.
pub fn read(text: &str) -> Result<Code, CodeFault> {
    let tokens = lex(text)?;
    let mut reader = ClassReader {
        text,
        tokens: &tokens,
        at: 0,
        open: Vec::new(),
        around: Vec::new(),
        line: (0, 1),
    };
    let mut code = Code::default();
    while let Some(token) = reader.next() {
        match token.sort {
            Sort::Word("class") => code.classes.extend(reader.class(token.start)?),
            Sort::Word("type") => code.aliases.extend(reader.alias()),
            Sort::Mark(mark) => reader.bracket(mark, token.start)?,
            _ => {}
        }
    }
    match reader.open.last() {
        None => Ok(code),
        Some((mark, at)) => Err(CodeFault::at(text, *at, format!("a `{mark}` is not closed"))),
    }
}

struct ClassReader<'r, 't> {
    text: &'t str,
    tokens: &'r [Lexeme<'t>],
    at: usize,
    /// The brackets that are open, with their places.
    open: Vec<(char, usize)>,
    /// The classes around this place: how many brackets are open in each, and its name.
    around: Vec<(usize, String)>,
    /// A byte, and the line that it is on.
    line: (usize, usize),
}

/// How many bytes the name of a class has at most; those of classes in classes become longer and longer.
const NAME: usize = 1_024;

impl<'r, 't> ClassReader<'r, 't> {
    fn peek(&self, ahead: usize) -> Option<&'r Sort<'t>> {
        self.tokens.get(self.at + ahead).map(|it| &it.sort)
    }

    fn next(&mut self) -> Option<&'r Lexeme<'t>> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn take(&mut self, mark: char) -> bool {
        let taken = self.peek(0) == Some(&Sort::Mark(mark));
        self.at += usize::from(taken);
        taken
    }

    fn bracket(&mut self, mark: char, at: usize) -> Result<(), CodeFault> {
        let closed = match mark {
            '(' | '[' | '{' => {
                self.open.push((mark, at));
                return Ok(());
            }
            ')' => '(',
            ']' => '[',
            '}' => '{',
            _ => return Ok(()),
        };
        match self.open.pop() {
            Some((open, _)) if open == closed => {}
            _ => {
                return Err(CodeFault::at(self.text, at, format!("a `{mark}` closes nothing")));
            }
        }
        if self.around.last().is_some_and(|(depth, _)| *depth > self.open.len()) {
            self.around.pop();
        }
        Ok(())
    }

    /// Reads the header of a class after `class`; nothing if it is a class resource or the like.
    fn class(&mut self, start: usize) -> Result<Option<PuppetClass>, CodeFault> {
        let Some(Sort::Word(name)) = self.peek(0) else { return Ok(None) };
        if !matches!(self.peek(1), Some(Sort::Mark('(' | '{') | Sort::Word("inherits"))) {
            return Ok(None);
        }
        self.at += 1;
        let name = name.trim_start_matches("::");
        let name = match self.around.last() {
            Some((_, around)) => format!("{around}::{name}"),
            None => name.to_owned(),
        };
        let fault = |reason: String| CodeFault::at(self.text, start, reason);
        if name.len() > NAME {
            return Err(fault(format!("the name of a class has more than {NAME} bytes")));
        }
        let mut parameters = Vec::new();
        if self.take('(') {
            let what = format!("the parameters of the class `{name}` cannot be read");
            parameters = self.parameters().ok_or_else(|| CodeFault::at(self.text, start, what))?;
        }
        if self.peek(0) == Some(&Sort::Word("inherits")) {
            self.at += 2;
        }
        if self.peek(0) != Some(&Sort::Mark('{')) {
            return Err(fault(format!("the class `{name}` has no body")));
        }
        self.around.push((self.open.len() + 1, name.clone()));
        let line = self.line_of(start);
        Ok(Some(PuppetClass { name, line, parameters }))
    }

    /// Returns the line of a byte that is behind the last one that was asked for.
    fn line_of(&mut self, byte: usize) -> usize {
        let (from, line) = self.line;
        let between = self.text.get(from..byte).unwrap_or_default();
        let line = line + between.bytes().filter(|it| *it == b'\n').count();
        self.line = (byte, line);
        line
    }

    fn parameters(&mut self) -> Option<Vec<Parameter>> {
        let mut parameters = Vec::new();
        while !self.take(')') {
            let written = self.until(|sort| matches!(sort, Sort::Variable(_)))?;
            let data_type = if written.is_empty() { None } else { DataType::of_tokens(written) };
            let Some(Sort::Variable(name)) = self.next().map(|it| &it.sort) else { return None };
            let default = if self.take('=') {
                let written = self.until(|sort| matches!(sort, Sort::Mark(',' | ')')))?;
                self.default(written)?
            } else {
                Default::Required
            };
            parameters.push(Parameter { name: (*name).to_owned(), data_type, default });
            if !self.take(',') {
                return self.take(')').then_some(parameters);
            }
        }
        Some(parameters)
    }

    fn default(&self, written: &[Lexeme<'_>]) -> Option<Default> {
        if let Some(value) = literal(written) {
            return Some(Default::Value(value));
        }
        let (first, last) = (written.first()?, written.last()?);
        Some(Default::Code(self.text.get(first.start..last.end)?.to_owned()))
    }

    /// Takes the tokens before the first one that is wanted and in no bracket, nor among the parameters of a lambda.
    fn until(&mut self, wanted: impl Fn(&Sort<'_>) -> bool) -> Option<&'r [Lexeme<'t>]> {
        let start = self.at;
        let (mut open, mut is_in_lambda) = (0_usize, false);
        loop {
            let sort = self.peek(0)?;
            if open == 0 && !is_in_lambda && wanted(sort) {
                return self.tokens.get(start..self.at);
            }
            match sort {
                Sort::Mark('|') if open == 0 => is_in_lambda = !is_in_lambda,
                Sort::Mark('(' | '[' | '{') => open += 1,
                Sort::Mark(')' | ']' | '}') => open = open.checked_sub(1)?,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Reads a type alias after `type`.
    fn alias(&mut self) -> Option<(String, DataType)> {
        let (Some(Sort::Type(name)), Some(Sort::Mark('='))) = (self.peek(0), self.peek(1)) else {
            return None;
        };
        let tokens = self.tokens.get(self.at + 2..)?;
        let (data_type, _) = DataType::first_of(tokens)?;
        Some(((*name).trim_start_matches("::").to_owned(), data_type))
    }
}
