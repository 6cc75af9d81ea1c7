//! The events of a decider derive `Event`, and a decision returns events of that type.

use floe::Event;
use floe::events::Decider;
use floe::events::harness::Harness;

enum CartEvent {
    CheckedOut,
}

enum Cart {}

impl Decider for Cart {
    const CATEGORY: &'static str = "Cart";
    type Id = str;
    type Event = CartEvent;
    type State = ();

    fn initial() {}

    fn evolve(_: (), _: &CartEvent) {}
}

#[derive(Debug, PartialEq, Event)]
enum DoorEvent {
    Opened,
}

enum Door {}

impl Decider for Door {
    const CATEGORY: &'static str = "Door";
    type Id = str;
    type Event = DoorEvent;
    type State = ();

    fn initial() {}

    fn evolve(_: (), _: &DoorEvent) {}
}

fn main() {
    Harness::<Door>::new()
        .when(|()| Ok::<_, String>("opened"))
        .then([DoorEvent::Opened]);
}
