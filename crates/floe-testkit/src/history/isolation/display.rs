//! Formats transactions and lists.

use std::fmt::{self, Debug, Display};

use super::{Status, Step, Transaction};

/// Maximum number of values shown of a list: its last ones.
const VALUES_SHOWN_MAX: usize = 6;

/// Formats transactions of a history, one line each.
pub(super) struct Lines<'a, K, V>(pub(super) &'a [Transaction<K, V>], pub(super) &'a [usize]);

impl<K: Debug, V: Debug> Display for Lines<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &id in self.1 {
            if let Some(transaction) = self.0.get(id) {
                writeln!(f, "T{id}: {}", OneLine(transaction))?;
            }
        }
        Ok(())
    }
}

struct OneLine<'a, K, V>(&'a Transaction<K, V>);

impl<K: Debug, V: Debug> Display for OneLine<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transaction {
            client,
            steps,
            status,
            invoked,
            returned,
        } = self.0;
        write!(f, "client {client} [{invoked}..")?;
        match returned {
            Some(returned) => write!(f, "{returned}] ")?,
            None => f.write_str("unknown] ")?,
        }
        f.write_str(match status {
            Status::Committed => "committed",
            Status::Aborted => "aborted",
            Status::Unknown => "unknown",
        })?;
        for step in steps {
            match step {
                Step::Append { key, value } => write!(f, ", append {value:?} to {key:?}")?,
                Step::Read { key, values } => {
                    write!(f, ", read {key:?} = {}", Listed(values.iter().collect()))?;
                }
            }
        }
        Ok(())
    }
}

/// Formats the values of a list, without the first ones if there are many.
pub(super) struct Listed<'a, V>(pub(super) Vec<&'a V>);

impl<V: Debug> Display for Listed<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.0.len().saturating_sub(VALUES_SHOWN_MAX);
        f.write_str("[")?;
        if hidden > 0 {
            write!(f, "({hidden} more)")?;
        }
        for (n, value) in self.0.iter().skip(hidden).enumerate() {
            let space = if n + hidden == 0 { "" } else { " " };
            write!(f, "{space}{value:?}")?;
        }
        f.write_str("]")
    }
}
