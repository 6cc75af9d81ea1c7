//! The registry and its published versions: the same number in each group; all but the last of a group expire.

use std::time::Duration;

use floe::registry::Versions;
use floe::{Db, Registry};
use tokio::task::JoinSet;

use crate::Failure;
use crate::checks::join_all;

/// How long a version is retained after a later one is published.
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
    /// A unique id.
    pub(super) id: u64,
}

/// The number of groups and versions.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionSet {
    pub(super) groups: u64,
    /// Number of versions that expire in each group.
    pub(super) each: u64,
}

/// Number of regions over which the groups are distributed.
pub(super) const REGIONS: u64 = 4;

impl VersionSet {
    pub(super) fn new(versions: u64, groups: u64) -> Self {
        let each = versions.div_ceil(groups).max(1);
        Self { groups, each }
    }

    /// Total number of versions that expire.
    pub(super) const fn expiring(&self) -> u64 {
        self.groups * self.each
    }

    /// The content of a version of a group.
    pub(super) fn layer(&self, group: u64, number: u64) -> Layer {
        Layer {
            region: region(group % REGIONS),
            package: group,
            id: group * (self.each + 1) + number,
        }
    }

    /// Creates the tables and publishes all versions.
    pub(super) async fn fill(&self, db: &Db) -> Result<(), Failure> {
        db.ensure_registries(&[Layer::SCHEMA]).await?;
        db.ensure_tables(&floe::changes::consumer::SCHEMAS).await?;
        let mut groups = JoinSet::new();
        for group in 0..self.groups {
            let (layers, version_set) = (layers(db), *self);
            groups.spawn(async move {
                for number in 1..=version_set.each + 1 {
                    layers.publish(&version_set.layer(group, number)).await?;
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

/// The registry, configured the same in all processes.
pub(super) fn layers(db: &Db) -> Versions<'static, Layer> {
    db.registry().retention(RETENTION)
}
