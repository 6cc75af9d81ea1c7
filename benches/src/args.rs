//! Command lines, taken apart by hand: flags are taken out by name, and whatever is left over in the end is
//! refused.

/// The arguments that nothing has asked for yet.
#[derive(Debug)]
pub(crate) struct Args(Vec<String>);

impl Args {
    /// These arguments.
    pub(crate) fn new(arguments: impl IntoIterator<Item = String>) -> Self {
        Self(arguments.into_iter().collect())
    }

    /// Takes the first argument, unless it is a flag.
    pub(crate) fn command(&mut self) -> Option<String> {
        let is_flag = self.0.first()?.starts_with('-');
        (!is_flag).then(|| self.0.remove(0))
    }

    /// Takes a flag without a value, and tells whether it was there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let at = self.0.iter().position(|argument| argument == name);
        at.map(|at| self.0.remove(at)).is_some()
    }

    /// Takes a flag and its value.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(at) = self.0.iter().position(|argument| argument == name) else {
            return Ok(None);
        };
        if at + 1 == self.0.len() {
            return Err(format!("{name} needs a value"));
        }
        self.0.remove(at);
        Ok(Some(self.0.remove(at)))
    }

    /// Takes a flag and its number.
    pub(crate) fn number(&mut self, name: &str, min: u64) -> Result<Option<u64>, String> {
        let Some(text) = self.value(name)? else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if number >= min => Ok(Some(number)),
            _ => Err(format!(
                "{name} needs a number of at least {min}: value={text}"
            )),
        }
    }

    /// Refuses whatever has not been taken.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some(argument) => Err(format!("unknown flag: flag={argument}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Args {
        Args::new(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_are_taken_wherever_they_stand() {
        let mut args = args("engine --case get --quick --items 5000");
        assert_eq!(args.command().as_deref(), Some("engine"));
        assert_eq!(args.number("--items", 1000), Ok(Some(5000)));
        assert!(args.flag("--quick"));
        assert!(!args.flag("--quick"));
        assert_eq!(args.value("--case"), Ok(Some("get".to_owned())));
        assert_eq!(args.value("--case"), Ok(None));
        assert_eq!(args.finish(), Ok(()));
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert_eq!(args("--quick").command(), None);
        assert_eq!(
            args("--case").value("--case"),
            Err("--case needs a value".to_owned())
        );
        for wrong in ["--items 999", "--items many", "--items -1"] {
            let told = args(wrong).number("--items", 1000).unwrap_err();
            assert!(told.starts_with("--items needs a number of at least 1000"));
        }
        assert_eq!(
            args("--fast").finish(),
            Err("unknown flag: flag=--fast".to_owned())
        );
    }
}
