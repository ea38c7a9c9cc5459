//! A pattern as instructions.

use super::ast::{Assertion, Ast, Direction, Look, Looping, Reference, Repeat, RepeatMode};
use super::set::{CodeSet, vertical};

/// The most instructions that counted repetitions may expand to.
const LIMIT: usize = 50_000;

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Instruction {
    /// Takes a character of the set.
    Set(u32),
    /// Goes on at the first, and if that fails at the second.
    Split(u32, u32),
    /// Goes on elsewhere.
    Jump(u32),
    /// Looks at the place.
    Assert(Assertion),
    /// Runs a program of its own at the place.
    Look { program: u32, direction: Direction, negative: bool },
    /// Runs a program of its own and goes on where it ended, without ever trying it otherwise.
    Atomic(u32),
    /// Notes where a capture starts. References see it when it has ended.
    Open(u32),
    /// Notes where a capture ends.
    Close(u32),
    /// Takes the text of a capture.
    Reference(Reference),
    /// Takes a grapheme cluster.
    Grapheme,
    /// Starts an iteration of a loop whose body can match nothing.
    Enter(u8),
    /// Leaves the loop if the iteration matched nothing; without an exit that iteration fails.
    Leave { bit: u8, exit: Option<u32> },
    /// The program has matched.
    Match,
}

/// The instructions of a pattern and of the programs in it; 0 is the pattern itself.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) code: Vec<Instruction>,
    pub(super) starts: Vec<u32>,
    pub(super) sets: Vec<CodeSet>,
    /// How many loops have a body that can match nothing.
    pub(super) bits: u8,
    /// How many captures there are, none if nothing refers to them.
    pub(super) captures: u32,
}

impl Program {
    /// Returns whether there is a look-behind in it.
    pub(super) fn looks_behind(&self) -> bool {
        let is_behind = |it: &Instruction| {
            matches!(it, Instruction::Look { direction: Direction::Behind { .. }, .. })
        };
        self.code.iter().any(is_behind)
    }
}

/// A pattern is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Makes the instructions of a pattern.
pub(super) fn compile(ast: &Ast, captures: u32) -> Result<Program, TooLarge> {
    let mut has_references = false;
    ast.walk(&mut |part| has_references |= matches!(part, Ast::Reference(_)));
    let mut compiler = PatternCompiler {
        program: Program {
            code: Vec::new(),
            starts: vec![0],
            sets: Vec::new(),
            bits: 0,
            captures: if has_references { captures } else { 0 },
        },
        waiting: Vec::new(),
    };
    compiler.part(ast)?;
    compiler.push(Instruction::Match)?;
    while let Some((program, body)) = compiler.waiting.pop() {
        let start = compiler.here();
        if let Some(place) = compiler.program.starts.get_mut(program) {
            *place = start;
        }
        compiler.part(&body)?;
        compiler.push(Instruction::Match)?;
    }
    Ok(compiler.program)
}

struct PatternCompiler {
    program: Program,
    /// Programs whose instructions are still to be made.
    waiting: Vec<(usize, Ast)>,
}

type Compiling = Result<(), TooLarge>;

impl PatternCompiler {
    fn here(&self) -> u32 {
        u32::try_from(self.program.code.len()).unwrap_or(u32::MAX)
    }

    fn push(&mut self, instruction: Instruction) -> Compiling {
        if self.program.code.len() >= LIMIT {
            return Err(TooLarge);
        }
        self.program.code.push(instruction);
        Ok(())
    }

    /// Leaves room for an instruction that is known later.
    fn reserve(&mut self) -> Result<u32, TooLarge> {
        let at = self.here();
        self.push(Instruction::Match)?;
        Ok(at)
    }

    fn fill(&mut self, at: u32, instruction: Instruction) {
        if let Some(place) = self.program.code.get_mut(at as usize) {
            *place = instruction;
        }
    }

    fn set(&mut self, set: &CodeSet) -> Compiling {
        let known = self.program.sets.iter().rev().take(8).position(|it| it == set);
        let index = match known {
            Some(back) => self.program.sets.len() - 1 - back,
            None => {
                self.program.sets.push(set.clone());
                self.program.sets.len() - 1
            }
        };
        self.push(Instruction::Set(u32::try_from(index).unwrap_or(u32::MAX)))
    }

    /// Notes a program of its own; its instructions follow later.
    fn program(&mut self, body: Ast) -> u32 {
        let number = self.program.starts.len();
        self.program.starts.push(0);
        self.waiting.push((number, body));
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn part(&mut self, ast: &Ast) -> Compiling {
        match ast {
            Ast::Empty => Ok(()),
            Ast::Set(set) => self.set(set),
            Ast::Sequence(parts) => parts.iter().try_for_each(|part| self.part(part)),
            Ast::Choice(parts) => self.choice(parts),
            Ast::Repeat(repeat) => self.repeat(repeat),
            Ast::Capture(number, body) => {
                if self.program.captures == 0 {
                    return self.part(body);
                }
                let index = number.saturating_sub(1);
                self.push(Instruction::Open(index))?;
                self.part(body)?;
                self.push(Instruction::Close(index))
            }
            Ast::Atomic(body) => {
                let program = self.program(body.as_ref().clone());
                self.push(Instruction::Atomic(program))
            }
            Ast::Look(look) => {
                let Look { body, direction, negative } = look.as_ref();
                let program = self.program(body.clone());
                let (direction, negative) = (*direction, *negative);
                self.push(Instruction::Look { program, direction, negative })
            }
            Ast::Reference(reference) => self.push(Instruction::Reference(*reference)),
            Ast::Assert(assertion) => self.push(Instruction::Assert(*assertion)),
            Ast::LineBreak => self.line_break(),
            Ast::Grapheme => self.push(Instruction::Grapheme),
        }
    }

    /// `\R` takes both characters of a `\r\n`, or else one.
    fn line_break(&mut self) -> Compiling {
        let single = |code| Ast::Set(CodeSet::of(code));
        let both = Ast::Sequence(vec![single(0x0d), single(0x0a)]);
        self.choice(&[both, Ast::Set(vertical())])
    }

    fn choice(&mut self, parts: &[Ast]) -> Compiling {
        let mut ends = Vec::new();
        let Some((last, parts)) = parts.split_last() else { return Ok(()) };
        for part in parts {
            let split = self.reserve()?;
            self.part(part)?;
            ends.push(self.reserve()?);
            let next = self.here();
            self.fill(split, Instruction::Split(split + 1, next));
        }
        self.part(last)?;
        let end = self.here();
        for at in ends {
            self.fill(at, Instruction::Jump(end));
        }
        Ok(())
    }

    fn repeat(&mut self, repeat: &Repeat) -> Compiling {
        // A line break in a loop gives nothing back either.
        let line_breaks = matches!(repeat.body, Ast::LineBreak);
        if repeat.mode == RepeatMode::Possessive {
            // No iteration gives anything back to the next.
            let body = match &repeat.body {
                body @ (Ast::Set(_) | Ast::Atomic(_)) => body.clone(),
                body => Ast::Atomic(Box::new(body.clone())),
            };
            let greedy = Repeat { body, mode: RepeatMode::Greedy, ..repeat.clone() };
            let program = self.program(Ast::Repeat(Box::new(greedy)));
            return self.push(Instruction::Atomic(program));
        }
        if line_breaks {
            let body = Ast::Atomic(Box::new(Ast::LineBreak));
            return self.repeat(&Repeat { body, ..repeat.clone() });
        }
        let nullable = repeat.body.is_nullable() && repeat.most.is_none_or(|most| most > 1);
        let mut leaves = Vec::new();
        let bit = if nullable { Some(self.bit()?) } else { None };
        let is_fixed = repeat.looping == Looping::FixedGroup;
        for _ in 0..repeat.least {
            // What must be there counts though it matches nothing.
            self.iteration(&repeat.body, bit.filter(|_| !is_fixed), &mut leaves)?;
        }
        match repeat.most {
            None => {
                let split = self.reserve()?;
                self.iteration(&repeat.body, bit, &mut leaves)?;
                self.push(Instruction::Jump(split))?;
                let end = self.here();
                self.fill(split, branch(repeat.mode, split + 1, end));
            }
            Some(most) => {
                let mut splits = Vec::new();
                for _ in repeat.least..most {
                    splits.push(self.reserve()?);
                    self.iteration(&repeat.body, bit, &mut leaves)?;
                }
                let end = self.here();
                for split in splits {
                    self.fill(split, branch(repeat.mode, split + 1, end));
                }
            }
        }
        let exit = if is_fixed { None } else { Some(self.here()) };
        for (at, bit) in leaves {
            self.fill(at, Instruction::Leave { bit, exit });
        }
        Ok(())
    }

    fn bit(&mut self) -> Result<u8, TooLarge> {
        let bit = self.program.bits;
        // One bit a loop; what has more of them than a number has bits was not written by people.
        self.program.bits = bit.checked_add(1).filter(|it| *it <= 32).ok_or(TooLarge)?;
        Ok(bit)
    }

    fn iteration(&mut self, body: &Ast, bit: Option<u8>, leaves: &mut Vec<(u32, u8)>) -> Compiling {
        let Some(bit) = bit else { return self.part(body) };
        self.push(Instruction::Enter(bit))?;
        self.part(body)?;
        leaves.push((self.reserve()?, bit));
        Ok(())
    }
}

fn branch(mode: RepeatMode, inside: u32, outside: u32) -> Instruction {
    match mode {
        RepeatMode::Lazy => Instruction::Split(outside, inside),
        RepeatMode::Greedy | RepeatMode::Possessive => Instruction::Split(inside, outside),
    }
}
