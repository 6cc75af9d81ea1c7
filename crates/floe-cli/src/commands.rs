//! Declares groups of subcommands.

/// Declares the subcommands of a command, and runs the selected one. A subcommand declared with `in field` is run by that
/// field, which opens the store, passes the command its input, and closes the store afterwards, even after a failure.
macro_rules! commands {
    (run $command:ident) => { $command.run() };

    (run $command:ident in $($place:ident).+) => {
        $command.$($place).+.run(async |given| $command.run(given).await)
    };

    ($(#[$about:meta])* $group:ident: $($name:ident($command:ty) $(in $($place:ident).+)?,)*) => {
        #[derive(Debug, clap::Args)]
        $(#[$about])*
        #[command(arg_required_else_help = true)]
        pub(super) struct $group {
            #[command(subcommand)]
            command: Command,
        }

        impl $group {
            pub(super) fn run(&self) -> $crate::Result {
                self.command.run()
            }
        }

        $crate::commands::commands! { $($name($command) $(in $($place).+)?,)* }
    };

    ($($name:ident($command:ty) $(in $($place:ident).+)?,)*) => {
        #[derive(Debug, clap::Subcommand)]
        enum Command {
            $($name($command),)*
        }

        impl Command {
            fn run(&self) -> $crate::Result {
                match self {
                    $(Self::$name(command) => {
                        $crate::commands::commands!(run command $(in $($place).+)?)
                    })*
                }
            }
        }
    };
}

pub(crate) use commands;
