//! The registry, and the versions that are published in it: the same in each group, of which all but the last expire.

use std::time::Duration;

use floe::registry::Versions;
use floe::{Db, Registry};
use tokio::task::JoinSet;

use crate::Failure;
use crate::checks::join_all;

/// How long versions stay once there is a later one.
const RETENTION: Duration = Duration::from_secs(1);

/// A layer of a package in a region.
#[derive(Clone, Debug, PartialEq, Registry)]
#[registry(
    table = "layers",
    pk = "lyr#{region}.{package}",
    sk = "lyrVrsn#v{version}",
    latest = "lyrVrsn0#",
    status = "dplySts",
    expires = "exDt",
    index(name = "package-status", key = package),
    index(name = "region-status", key = region)
)]
pub(super) struct Layer {
    pub(super) region: String,
    pub(super) package: u64,
    /// What tells it from all others.
    pub(super) id: u64,
}

/// How many versions are where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shelf {
    pub(super) groups: u64,
    /// How many expire in each group.
    pub(super) each: u64,
}

/// The regions, between which the groups are shared.
pub(super) const REGIONS: u64 = 4;

impl Shelf {
    pub(super) fn new(versions: u64, groups: u64) -> Self {
        let each = versions.div_ceil(groups).max(1);
        Self { groups, each }
    }

    /// How many versions expire in all.
    pub(super) const fn expiring(&self) -> u64 {
        self.groups * self.each
    }

    /// What is published as this version of a group.
    pub(super) fn layer(&self, group: u64, number: u64) -> Layer {
        Layer {
            region: region(group % REGIONS),
            package: group,
            id: group * (self.each + 1) + number,
        }
    }

    /// Makes the tables, and publishes all versions.
    pub(super) async fn fill(&self, db: &Db) -> Result<(), Failure> {
        db.ensure_registries(&[Layer::SCHEMA]).await?;
        db.ensure_tables(&floe::changes::consumer::SCHEMAS).await?;
        let mut groups = JoinSet::new();
        for group in 0..self.groups {
            let (layers, shelf) = (layers(db), *self);
            groups.spawn(async move {
                for number in 1..=shelf.each + 1 {
                    layers.publish(&shelf.layer(group, number)).await?;
                }
                Ok::<_, floe::Error>(())
            });
        }
        join_all(groups).await
    }
}

/// The name of a region.
pub(super) fn region(number: u64) -> String {
    format!("region-{number}")
}

/// The registry, as all processes use it.
pub(super) fn layers(db: &Db) -> Versions<'static, Layer> {
    db.registry().retention(RETENTION)
}
