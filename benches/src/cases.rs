//! Selection of the cases of a benchmark.

use clap::Args;

/// The flag that selects cases.
#[derive(Debug, Args)]
pub(crate) struct Cases {
    /// Run only the cases whose name contains NAME
    #[arg(id = "cases", long = "only", value_name = "NAME")]
    only: Option<String>,
}

impl Cases {
    /// Fails if no case name contains the text of the flag.
    pub(crate) fn check(
        &self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), String> {
        if names.into_iter().any(|name| self.wants(name.as_ref())) {
            Ok(())
        } else {
            Err(format!(
                "no case name contains the text of --only: only={}",
                self.only.as_deref().unwrap_or_default()
            ))
        }
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| name.contains(only))
    }
}
