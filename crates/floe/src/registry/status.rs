//! The status of a deployed version.

/// The status of a deployed version in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// A later version exists. A deprecated version can expire.
    Deprecated,
    /// It is the latest version.
    Latest,
}

impl Status {
    /// The stored text.
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
