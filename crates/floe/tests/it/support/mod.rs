//! Shared support: a model, engines that hold or fail requests, timers that do not wait, a simulation.

pub(crate) mod gate;
pub(crate) mod ledger;
pub(crate) mod no_time;
pub(crate) mod sim;
pub(crate) mod slow;
pub(crate) mod streams;

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
