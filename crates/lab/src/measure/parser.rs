//! A measure becomes a tree. Operators are read by precedence (Pratt), and arguments by what the
//! function takes.

use super::functions::{self, FUNCTION_SIGNATURES, Function, Parameter, Signature};
use super::lexer::{Lexer, Token};
use super::measure_error::MeasureError;
use super::tree::{Argument, AxisChoice, Call, Expr, MEMBER_NAME, Op, Over};
use crate::spelling;

/// The longest measure, in bytes.
pub const MAX_TEXT_LEN: usize = 4096;

/// The largest depth of a tree of operators, brackets and calls.
const MAX_DEPTH: usize = 64;

/// The precedence of a prefix minus: above `*`, below `[…]`.
const PREFIX_PRECEDENCE: u8 = 5;

/// An expression, and the depth of its tree.
type ParsedExpr = (Expr, usize);

/// Reads all of `text`.
pub(super) fn parse(text: &str) -> Result<Expr, MeasureError> {
    if text.len() > MAX_TEXT_LEN {
        let what =
            format!("{} bytes are more than anybody reads: expected at most {MAX_TEXT_LEN}", text.len());
        return Err(MeasureError { at: 0, what });
    }
    let mut parser = Parser { lexer: Lexer::new(text), depth: 0, overs: Vec::new(), says_it: false };
    let (root, _) = parser.expression(0)?;
    match parser.lexer.peek()? {
        Token::End => Ok(root),
        Token::Sign(')') => parser.lexer.wrong("this `)` closes nothing"),
        found => parser.lexer.wrong(format!("expected an operator or the end, found {found}")),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    depth: usize,
    /// The axes and groups over which the enclosing functions run.
    overs: Vec<Over>,
    /// Whether the name `it` was used since the innermost `members(…)` began.
    says_it: bool,
}

impl Parser<'_> {
    /// An expression whose operators bind at least as tightly as `power`.
    fn expression(&mut self, power: u8) -> Result<ParsedExpr, MeasureError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.too_deep();
        }
        let mut left = self.operand()?;
        loop {
            let next = self.lexer.peek()?;
            if next == Token::Sign('[') {
                let choices = self.variant()?;
                left = self.grown(Expr::At(Box::new(left.0), choices), left.1)?;
                continue;
            }
            let (op, binds) = match next {
                Token::Sign('+') => (Op::Add, 1),
                Token::Sign('-') => (Op::Subtract, 1),
                Token::Sign('*') => (Op::Multiply, 3),
                Token::Sign('/') => (Op::Divide, 3),
                _ => break,
            };
            if binds < power {
                break;
            }
            self.lexer.next()?;
            let start = self.lexer.place();
            let right = self.expression(binds + 1)?;
            let place = start..self.lexer.behind();
            let height = left.1.max(right.1);
            left = self.grown(Expr::Binary(op, Box::new(left.0), Box::new(right.0), place), height)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn grown(&mut self, expr: Expr, inner: usize) -> Result<ParsedExpr, MeasureError> {
        if inner + 1 > MAX_DEPTH { self.too_deep() } else { Ok((expr, inner + 1)) }
    }

    fn too_deep<T>(&mut self) -> Result<T, MeasureError> {
        self.lexer.wrong(format!("deeper than {MAX_DEPTH}: expected fewer brackets or operators"))
    }

    fn operand(&mut self) -> Result<ParsedExpr, MeasureError> {
        let start = self.lexer.place();
        let mut behind = self.lexer.clone();
        match behind.next()? {
            Token::Number(number) => {
                self.lexer = behind;
                Ok((Expr::Number(number), 1))
            }
            Token::Sign('-') => {
                self.lexer = behind;
                let inner = self.expression(PREFIX_PRECEDENCE)?;
                self.grown(Expr::Negate(Box::new(inner.0)), inner.1)
            }
            Token::Sign('(') => {
                self.lexer = behind;
                let inner = self.expression(0)?;
                self.close(')', "this expression")?;
                Ok(inner)
            }
            Token::Word(word) => match functions::named(word) {
                None => {
                    let known = FUNCTION_SIGNATURES.iter().map(|signature| signature.name);
                    self.lexer.wrong(match spelling::closest(word, known) {
                        Some(close) => format!("there is no function `{word}`: did you mean `{close}`?"),
                        None => format!("there is no function `{word}`: docs/lab.md lists them"),
                    })
                }
                Some(signature) => {
                    self.lexer = behind;
                    self.call(signature, start)
                }
            },
            Token::End => self.lexer.wrong("expected a number, a function or `(`, found the end"),
            found => self.lexer.wrong(format!("expected a number, a function or `(`, found {found}")),
        }
    }

    fn close(&mut self, sign: char, of: &str) -> Result<(), MeasureError> {
        if self.lexer.skip(sign)? {
            return Ok(());
        }
        let found = self.lexer.peek()?;
        self.lexer.wrong(format!("expected `{sign}` at the end of {of}, found {found}"))
    }

    fn call(&mut self, signature: &Signature, start: usize) -> Result<ParsedExpr, MeasureError> {
        if !self.lexer.skip('(')? {
            let found = self.lexer.peek()?;
            return self.lexer.wrong(format!("expected `(`: {}, found {found}", signature.usage()));
        }
        let (mut arguments, mut height, runs_over) = (Vec::new(), 0, self.overs.len());
        let said_it = core::mem::take(&mut self.says_it);
        if self.lexer.peek()? != Token::Sign(')') {
            loop {
                let Some(parameter) = signature.parameter(arguments.len()) else {
                    return self.lexer.wrong(format!("too much for {}", signature.usage()));
                };
                let (argument, deep) = self.argument(parameter)?;
                height = height.max(deep);
                arguments.push(argument);
                if !self.lexer.skip(',')? {
                    break;
                }
            }
        }
        if arguments.len() < signature.needed {
            return self.lexer.wrong(format!("expected more: {}", signature.usage()));
        }
        self.close(')', &signature.usage())?;
        self.overs.truncate(runs_over);
        let over_members = matches!(arguments.first(), Some(Argument::Over(Over::Members(_))));
        if over_members && signature.function == Function::Spearman && arguments.len() == 2 {
            let what =
                "members are no numbers: expected spearman(members(group), measure, measure)".to_owned();
            return Err(MeasureError { at: start, what });
        }
        if over_members && !self.says_it {
            let what = "never says which member: expected a function of `it`, such as goodput(it)".to_owned();
            return Err(MeasureError { at: start, what });
        }
        self.says_it = said_it || self.says_it && !over_members;
        let place = start..self.lexer.behind();
        self.grown(Expr::Call(Call { function: signature.function, arguments, place }), height)
    }

    fn argument(&mut self, parameter: Parameter) -> Result<(Argument, usize), MeasureError> {
        Ok(match parameter {
            Parameter::Name(what) => {
                let what = if what.starts_with(['a', 'e', 'i', 'o', 'u']) {
                    format!("an {what}")
                } else {
                    format!("a {what}")
                };
                let name = self.lexer.name(&what, &[',', ')'])?;
                self.says_it |= name == MEMBER_NAME;
                (Argument::Name(name), 0)
            }
            Parameter::Value(_) => {
                let (value, height) = self.expression(0)?;
                (Argument::Value(value), height)
            }
            Parameter::Variant => (Argument::Variant(self.variant()?), 0),
            Parameter::Over => (Argument::Over(self.over()?), 0),
        })
    }

    /// Reads an axis, or `members(group)`. The axis of an enclosing function is an error, as it has
    /// only one value here. `members` within `members` is an error too.
    fn over(&mut self) -> Result<Over, MeasureError> {
        let start = self.lexer.place();
        let mut behind = self.lexer.clone();
        let over = if behind.next()? == Token::Word("members") && behind.skip('(')? {
            self.lexer = behind;
            let name = self.lexer.name("a group of transfers", &[')', ','])?;
            self.close(')', "members(group)")?;
            Over::Members(name)
        } else {
            Over::Axis(self.lexer.name("an axis, or members(group)", &[',', ')'])?)
        };
        let again = self.overs.iter().any(|outer| match (outer, &over) {
            (Over::Axis(outer), Over::Axis(inner)) => outer == inner,
            (Over::Members(_), Over::Members(_)) => true,
            _ => false,
        });
        if again {
            let what = match &over {
                Over::Axis(axis) => format!("a function around this one runs over `{axis}` already"),
                Over::Members(_) => "a function around this one runs over members already".to_owned(),
            };
            return Err(MeasureError { at: start, what });
        }
        self.overs.push(over.clone());
        Ok(over)
    }

    /// Parses `[axis=label, …]`, which chooses variants.
    fn variant(&mut self) -> Result<Vec<AxisChoice>, MeasureError> {
        if !self.lexer.skip('[')? {
            let found = self.lexer.peek()?;
            return self.lexer.wrong(format!("expected the variant as [axis=value], found {found}"));
        }
        let mut choices: Vec<AxisChoice> = Vec::new();
        loop {
            let start = self.lexer.place();
            let axis = self.lexer.name("an axis", &['=', ',', ']'])?;
            if choices.iter().any(|choice| choice.axis == axis) {
                let what = format!("`{axis}` has a value already");
                return Err(MeasureError { at: start, what });
            }
            if !self.lexer.skip('=')? {
                let found = self.lexer.peek()?;
                return self.lexer.wrong(format!("expected `=` and a value of `{axis}`, found {found}"));
            }
            let label = self.lexer.name(&format!("a value of `{axis}`"), &[',', ']'])?;
            choices.push(AxisChoice { axis, label });
            if !self.lexer.skip(',')? {
                break;
            }
        }
        self.close(']', "the variant")?;
        Ok(choices)
    }
}
