//! Commands that are made of other commands.

/// Declares the commands below a command, and what runs the one that was called.
macro_rules! commands {
    ($(#[$about:meta])* $group:ident: $($name:ident($command:ty),)*) => {
        #[derive(Debug, clap::Args)]
        $(#[$about])*
        #[command(arg_required_else_help = true)]
        pub(super) struct $group {
            #[command(subcommand)]
            command: Command,
        }

        impl $group {
            pub(super) fn run(&self) -> Result<(), $crate::Failure> {
                self.command.run()
            }
        }

        $crate::commands::commands! { $($name($command),)* }
    };

    ($($name:ident($command:ty),)*) => {
        #[derive(Debug, clap::Subcommand)]
        enum Command {
            $($name($command),)*
        }

        impl Command {
            fn run(&self) -> Result<(), $crate::Failure> {
                match self {
                    $(Self::$name(command) => command.run(),)*
                }
            }
        }
    };
}

pub(crate) use commands;
