//! What a small build says.

use crate::args::Cli;
use crate::exit::Exit;
use crate::output::{Output, Style};
use crate::verb::run;
use clap::Parser as _;

/// Whatever is asked of a verb that is not there, the answer is one sentence.
#[test]
fn a_small_build_says_what_it_does_not_have() {
    let mut output = Output::to(Box::new(std::io::sink()), Box::new(std::io::sink()), Style::default());
    for (words, says) in [
        ("gateway --config gw.toml", "this build has no gateway"),
        ("gateway status", "this build has no gateway"),
        ("demo", "this build has no demo"),
        ("lane 80:example.org:80", "this build has no lane"),
        ("completions bash", "this build has no completions"),
        ("man", "this build has no completions"),
        ("pair 7-crossover-clockwork", "this build pairs no hosts"),
    ] {
        let cli = Cli::try_parse_from(["byway"].into_iter().chain(words.split(' '))).unwrap();
        let error = run(&cli, &mut output).unwrap_err();
        assert_eq!(Exit::of(&error), Exit::Usage);
        assert!(error.to_string().starts_with(says), "{words}: {error}");
        assert!(!error.to_string().contains('\n'));
    }
}
