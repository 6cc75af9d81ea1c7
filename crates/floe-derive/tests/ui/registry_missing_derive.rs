//! Only registries have versions.

struct Layer;

fn layers(db: &floe::Db) {
    db.registry::<Layer>();
}

fn main() {}
