//! `floe changes`: what was inserted, changed and removed in a table.

mod parked;
mod tail;

use crate::commands;

commands! {
    /// Follow the changes of tables, and look after those that consumers did not get on with
    #[command(after_help = "\
Examples:
  floe changes tail orders --endpoint http://127.0.0.1:8000
  floe changes tail orders --from-start --once --json --data ./shop
  floe changes parked mailer --data ./shop
  floe changes replay mailer --all --data ./shop

A table tells of its changes if it has a change stream: `floe table create … --stream new-and-old-images`.")]
    ChangesCommand:
    Tail(tail::Tail) in at,
    Parked(parked::ParkedCommand) in at,
    Replay(parked::ReplayCommand) in at,
    Discard(parked::DiscardCommand) in at,
}
