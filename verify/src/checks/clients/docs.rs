//! Runs the commands and programs in `docs/using-with-aws-sdks.md` as written, from top to bottom.
//!
//! A `sh` block that starts a server provides the server for the following blocks, on a port chosen by the system.
//! Blocks of `sh`, `python` and `javascript` are run with all earlier exports; an `ini` block becomes the configuration
//! file of the AWS tools; a `text` block is the expected output of the block before it. Other blocks are skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::super::tool::must_succeed;
use super::install::Installed;
use super::program::environment;
use super::server::Running;
use crate::{Failure, out};

/// The server address in the document, replaced by the actual one.
const ADDRESS: &str = "127.0.0.1:8000";

/// The result of running the document.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Blocks that were run.
    pub(super) run: usize,
    /// Blocks that failed or printed something else.
    pub(super) failed: usize,
}

/// Runs all runnable blocks of the document.
pub(super) fn check(floe: &Path, installed: &Installed) -> Result<Outcome, Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("docs");
    let text = fs::read_to_string(path.join("using-with-aws-sdks.md"))?;
    let mut session = Session::new(floe, installed)?;
    let mut outcome = Outcome::default();
    for block in blocks(&text) {
        let Some(done) = session.run(&block) else {
            continue;
        };
        outcome.run += 1;
        if let Err(Failure::Broken(why) | Failure::Usage(why)) = done {
            outcome.failed += 1;
            out::note(&format!("docs: {}: {why}", block.title()));
        }
    }
    Ok(outcome)
}

/// A block of code.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    language: String,
    text: String,
    /// The expected output, if the document shows it.
    printed: Option<String>,
}

impl Block {
    fn starts_server(&self) -> bool {
        self.text.lines().any(|line| line.starts_with("floe serve"))
    }

    /// The first line, as a name for messages.
    fn title(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

/// The blocks of a document in Markdown.
fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            continue;
        };
        let inside: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text = inside.join("\n");
        match (language, found.last_mut()) {
            ("text", Some(before)) => before.printed = Some(text),
            _ => found.push(Block {
                language: language.to_owned(),
                text,
                printed: None,
            }),
        }
    }
    found
}

/// A shell session of a reader who follows the document.
struct Session<'a> {
    installed: &'a Installed,
    folder: TempDir,
    path: String,
    exports: String,
    server: Option<Running>,
    count: usize,
}

impl<'a> Session<'a> {
    fn new(floe: &Path, installed: &'a Installed) -> Result<Self, Failure> {
        let folders = [floe.parent().unwrap_or(floe), &installed.python_programs()]
            .map(|folder| folder.display().to_string());
        let before = std::env::var("PATH").unwrap_or_default();
        Ok(Self {
            installed,
            folder: tempfile::tempdir()?,
            path: format!("{}:{before}", folders.join(":")),
            exports: String::new(),
            server: None,
            count: 0,
        })
    }

    /// Runs a block, if its language can be run.
    fn run(&mut self, block: &Block) -> Option<Result<(), Failure>> {
        self.count += 1;
        let text = block.text.replace(ADDRESS, self.address());
        match block.language.as_str() {
            "sh" if block.starts_server() => Some(self.serve(&block.text)),
            "sh" => Some(self.run_script(&text, block)),
            "python" => {
                let file = self.folder.path().join(format!("{}.py", self.count));
                Some(self.run_file(&file, &text, "python", block))
            }
            "javascript" => {
                let name = format!("document-{}.mjs", self.count);
                let file = self.installed.javascript().join(name);
                Some(self.run_file(&file, &text, "node", block))
            }
            "ini" => Some(fs::write(self.config(), text).map_err(Failure::from)),
            _ => None,
        }
    }

    fn address(&self) -> &str {
        self.server.as_ref().map_or(ADDRESS, Running::address)
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn serve(&mut self, text: &str) -> Result<(), Failure> {
        // The previous server must release the directory first.
        self.server = None;
        let listen = "exec floe serve --listen 127.0.0.1:0";
        let command = self.shell(&text.replace("floe serve", listen));
        self.server = Some(Running::start(command)?);
        Ok(())
    }

    fn run_script(&mut self, text: &str, block: &Block) -> Result<(), Failure> {
        let is_printed = self.expect(text, block);
        let exports = text.lines().filter(|line| line.starts_with("export "));
        for line in exports {
            self.exports += &format!("{line}\n");
        }
        is_printed
    }

    fn run_file(
        &self,
        file: &Path,
        text: &str,
        program: &str,
        block: &Block,
    ) -> Result<(), Failure> {
        fs::write(file, text)?;
        self.expect(&format!("{program} '{}'", file.display()), block)
    }

    /// Runs a script and compares its output.
    fn expect(&self, script: &str, block: &Block) -> Result<(), Failure> {
        let output = must_succeed(&mut self.shell(script))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        match &block.printed {
            Some(expected) if expected.trim() != printed.trim() => {
                let message = format!("expected={expected:?} printed={printed:?}");
                Err(Failure::Broken(message))
            }
            _ => Ok(()),
        }
    }

    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        environment(&mut command);
        // Only the settings in the document apply.
        for name in [
            "ACCESS_KEY_ID",
            "SECRET_ACCESS_KEY",
            "REGION",
            "DEFAULT_REGION",
        ] {
            command.env_remove(format!("AWS_{name}"));
        }
        command
            .args(["-euo", "pipefail", "-c"])
            .arg(format!("{}{script}", self.exports))
            .current_dir(self.folder.path())
            .env("PATH", &self.path)
            .env("AWS_CONFIG_FILE", self.config());
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_parsed_with_their_expected_output() {
        let text = "# Title\n\n```sh\nexport A=1\nfloe serve --memory\n```\nText\n```python\nprint(1)\n```\n\n```text\n1\n```\n";
        let found = blocks(text);
        let languages: Vec<_> = found.iter().map(|block| &*block.language).collect();
        assert_eq!(languages, ["sh", "python"]);
        let printed: Vec<_> = found.iter().map(|block| block.printed.as_deref()).collect();
        assert_eq!(printed, [None, Some("1")]);
        let serving: Vec<_> = found.iter().map(Block::starts_server).collect();
        assert_eq!(serving, [true, false]);
    }
}
