//! The model that the tests share.

use floe::Model;

#[derive(Clone, Debug, PartialEq, Model)]
pub(crate) struct Player {
    #[model(key)]
    pub id: String,
    #[model(min = 0)]
    pub level: i64,
    pub guild: Option<String>,
}

pub(crate) fn player(id: &str, level: i64) -> Player {
    Player {
        id: id.to_owned(),
        level,
        guild: None,
    }
}
