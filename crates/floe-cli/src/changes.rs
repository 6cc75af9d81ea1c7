//! `floe changes`: change streams of tables, and dead letters of their consumers.

mod parked;
mod tail;

use crate::commands;

commands! {
    /// Follow changes of tables, and manage the dead letters of their consumers
    #[command(after_help = "\
Examples:
  floe changes tail orders --endpoint http://127.0.0.1:8000
  floe changes tail orders --from-start --once --json --data ./shop
  floe changes parked mailer --data ./shop
  floe changes replay mailer --all --data ./shop

Changes are recorded if the table has a change stream: `floe table create … --stream new-and-old-images`.")]
    ChangesCommand:
    Tail(tail::Tail) in target,
    Parked(parked::ParkedCommand) in target,
    Replay(parked::ReplayCommand) in target,
    Discard(parked::DiscardCommand) in target,
}
