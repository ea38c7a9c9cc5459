//! The characters of a pattern, with `\Q…\E` taken out.

/// A character of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternToken {
    /// A character that means what the syntax says.
    Plain(char),
    /// A character that stands for itself.
    Quoted(char),
}

impl PatternToken {
    pub(super) fn code(self) -> u32 {
        match self {
            Self::Plain(character) | Self::Quoted(character) => u32::from(character),
        }
    }
}

/// The tokens of a pattern, and the next of them.
pub(super) struct PatternSource {
    tokens: Vec<(PatternToken, u32)>,
    length: u32,
    pub(super) at: usize,
}

impl PatternSource {
    pub(super) fn new(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let mut tokens = Vec::with_capacity(characters.len());
        let mut rest = (0_u32..).zip(characters.iter().copied()).peekable();
        while let Some((at, character)) = rest.next() {
            match (character, rest.peek().map(|(_, next)| *next)) {
                ('\\', Some('Q')) => {
                    rest.next();
                    quote(&mut rest, &mut tokens);
                }
                ('\\', Some(next)) => {
                    tokens.push((PatternToken::Plain('\\'), at));
                    tokens.push((PatternToken::Plain(next), at + 1));
                    rest.next();
                }
                _ => tokens.push((PatternToken::Plain(character), at)),
            }
        }
        let length = u32::try_from(characters.len()).unwrap_or(u32::MAX);
        Self { tokens, length, at: 0 }
    }

    pub(super) fn peek(&self) -> Option<PatternToken> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<PatternToken> {
        self.tokens.get(self.at + ahead).map(|(token, _)| *token)
    }

    pub(super) fn next(&mut self) -> Option<PatternToken> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    /// Returns the place of a token in the pattern.
    pub(super) fn offset(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(self.length, |(_, offset)| *offset) as usize
    }

    /// Skips blanks, and comments up to the end of the line.
    pub(super) fn skip_comments(&mut self, unix_lines: bool) {
        loop {
            match self.peek() {
                Some(PatternToken::Plain(' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')) => {
                    self.at += 1;
                }
                Some(PatternToken::Plain('#')) => {
                    // The terminator is not a part of the comment: one that is not a blank is a character
                    // of the pattern.
                    let ends = |token: PatternToken| match token.code() {
                        0x0a => true,
                        0x0d | 0x85 | 0x2028 | 0x2029 => !unix_lines,
                        _ => false,
                    };
                    while self.peek().is_some_and(|token| !ends(token)) {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }
}

/// Takes the characters of a quote. Letters need no quoting, so they can still be part of a name;
/// so can digits, except the first character.
fn quote(
    rest: &mut std::iter::Peekable<impl Iterator<Item = (u32, char)>>,
    tokens: &mut Vec<(PatternToken, u32)>,
) {
    let mut first = true;
    while let Some((at, character)) = rest.next() {
        if character == '\\' && rest.peek().is_some_and(|(_, next)| *next == 'E') {
            rest.next();
            return;
        }
        let plain = !character.is_ascii()
            || character.is_ascii_alphabetic()
            || (character.is_ascii_digit() && !first);
        tokens.push((
            if plain { PatternToken::Plain(character) } else { PatternToken::Quoted(character) },
            at,
        ));
        first = false;
    }
}
