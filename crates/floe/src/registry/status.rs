//! The status of a deployed version.

/// What a deployed version is to its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// There is a later one; this one goes when its time has come.
    Deprecated,
    /// There is no later one.
    Latest,
}

impl Status {
    /// The text that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deprecated => "deprecated",
            Self::Latest => "latest",
        }
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        let all = [Self::Deprecated, Self::Latest];
        all.into_iter().find(|status| status.as_str() == text)
    }
}
