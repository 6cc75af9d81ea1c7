//! Which cases of a benchmark run.

use clap::Args;

/// The flag that chooses cases.
#[derive(Debug, Args)]
pub(crate) struct Cases {
    /// Only the cases whose name contains it
    #[arg(id = "cases", long = "only", value_name = "NAME")]
    only: Option<String>,
}

impl Cases {
    /// Refuses a name that is in none of the cases.
    pub(crate) fn check(
        &self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), String> {
        match names.into_iter().any(|name| self.wants(name.as_ref())) {
            true => Ok(()),
            false => Err(format!(
                "no case has this in its name: only={}",
                self.only.as_deref().unwrap_or_default()
            )),
        }
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| name.contains(only))
    }
}
