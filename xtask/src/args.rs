//! Command lines, taken apart by hand: flags are taken out by name, and whatever is left over in
//! the end is refused.

use std::fmt::Display;
use std::str::FromStr;

use crate::Failure;

/// The arguments that nothing has asked for yet.
#[derive(Debug, Clone)]
pub(crate) struct Args(Vec<String>);

impl Args {
    /// The arguments of this process.
    pub(crate) fn from_env() -> Self {
        Self::new(std::env::args().skip(1))
    }

    /// These arguments.
    pub(crate) fn new<S: Into<String>>(arguments: impl IntoIterator<Item = S>) -> Self {
        Self(arguments.into_iter().map(Into::into).collect())
    }

    /// Takes the first argument, unless it is a flag.
    pub(crate) fn command(&mut self) -> Option<String> {
        let is_flag = self.0.first()?.starts_with('-');
        (!is_flag).then(|| self.0.remove(0))
    }

    /// Takes `--help` or `-h`, and tells whether it was there.
    pub(crate) fn help(&mut self) -> bool {
        let (long, short) = (self.flag("--help"), self.flag("-h"));
        long || short
    }

    /// Takes a flag without a value, and tells whether it was there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let position = self.0.iter().position(|argument| argument == name);
        position.map(|at| self.0.remove(at)).is_some()
    }

    /// Takes a flag and its value, written `--name value` or `--name=value`.
    pub(crate) fn value<T: FromStr<Err: Display>>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let value = text.parse();
        value
            .map(Some)
            .map_err(|error| Failure::usage(format!("{name}: {error}: {text:?}")))
    }

    /// Takes a flag and its value, which must be there.
    pub(crate) fn required<T: FromStr<Err: Display>>(&mut self, name: &str) -> Result<T, Failure> {
        let value = self.value(name)?;
        value.ok_or_else(|| Failure::usage(format!("{name} is missing")))
    }

    /// Refuses whatever has not been taken.
    pub(crate) fn finish(self, command: &str) -> Result<(), Failure> {
        match self.0.first() {
            None => Ok(()),
            Some(argument) => Err(Failure::usage(format!(
                "unknown argument: {argument}; see {command} --help"
            ))),
        }
    }

    /// Everything that has not been taken, to be passed on.
    pub(crate) fn rest(self) -> Vec<String> {
        self.0
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let joined = format!("{name}=");
        let found = self
            .0
            .iter()
            .position(|argument| argument == name || argument.starts_with(&joined));
        let Some(at) = found else { return Ok(None) };
        let argument = self.0.remove(at);
        if let Some(value) = argument.strip_prefix(&joined) {
            return Ok(Some(value.to_owned()));
        }
        if self.0.len() <= at {
            return Err(Failure::usage(format!("{name} needs a value")));
        }
        Ok(Some(self.0.remove(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(result: Result<impl std::fmt::Debug, Failure>) -> String {
        match result.unwrap_err() {
            Failure::Usage(message) => message,
            Failure::Broken(message) => panic!("not a mistake in the call: {message}"),
        }
    }

    #[test]
    fn flags_are_taken_wherever_they_stand() {
        let mut args = Args::new(["kill", "--seed", "7", "--quick", "--cycles=3"]);
        assert_eq!(args.command().as_deref(), Some("kill"));
        assert_eq!(args.command(), None);
        assert!(args.flag("--quick"));
        assert!(!args.flag("--quick"));
        assert_eq!(args.value::<u64>("--cycles").unwrap(), Some(3));
        assert_eq!(args.required::<u64>("--seed").unwrap(), 7);
        assert_eq!(args.value::<u64>("--items").unwrap(), None);
        args.finish("verify kill").unwrap();
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        let mut args = Args::new(["--seed", "x", "--cycles", "--fast"]);
        assert_eq!(
            usage(args.value::<u64>("--seed")),
            "--seed: invalid digit found in string: \"x\""
        );
        assert_eq!(usage(args.required::<u64>("--items")), "--items is missing");
        assert_eq!(
            usage(args.clone().finish("verify kill")),
            "unknown argument: --cycles; see verify kill --help"
        );
        assert_eq!(
            usage(Args::new(["--seed"]).value::<u64>("--seed")),
            "--seed needs a value"
        );
    }
}
