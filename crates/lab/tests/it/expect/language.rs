//! What is said about measures that are none.

use byway_lab::measure::{MAX_TEXT_LEN, Measure};
use proptest::prelude::*;

#[track_caller]
fn refused(text: &str, at: usize, says: &str) {
    let error = Measure::parse(text).expect_err("no measure");
    assert!(error.what.contains(says), "{text}: {}", error.what);
    assert_eq!(error.at, at, "{text}: {}", error.what);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    refused("", 0, "expected a number, a function or `(`, found the end");
    refused("1 +", 3, "found the end");
    refused("1 2", 2, "expected an operator or the end, found 2");
    refused("(1 + 2", 6, "expected `)` at the end of this expression, found the end");
    refused("1)", 1, "this `)` closes nothing");
    refused("1 $ 2", 2, "found `$`");
    refused("1.2.3", 3, "found 0.3");
    refused("1e999", 0, "`1e999` is no number");
    refused(". + 1", 0, "`.` is no number");
    refused("  godput(T)", 2, "there is no function `godput`: did you mean `goodput`?");
    refused("throughput(T)", 0, "there is no function `throughput`: docs/lab.md lists them");
    refused("goodput", 7, "expected `(`: goodput(transfer, from second?, to second?), found the end");
    refused("goodput()", 8, "expected more: goodput(transfer");
    refused("goodput(, 1)", 8, "expected the name of a transfer");
    refused("goodput(T, 1, 2, 3)", 17, "too much for goodput(transfer");
    refused("goodput(T 1)", 9, "stands in quotes");
    refused("goodput('T, 1)", 8, "this ' is never closed");
    refused("goodput(T, )", 11, "expected a number, a function or `(`, found `)`");
    refused("goodput(T)[c]", 12, "expected `=` and a value of `c`, found `]`");
    refused("goodput(T)[=1]", 11, "expected the name of an axis");
    refused("goodput(T)[c=a, c=b]", 16, "`c` has a value already");
    refused("goodput(T)[c=a", 14, "expected `]` at the end of the variant, found the end");
    refused("stretch(W, 50, none)", 15, "expected the variant as [axis=value], found `none`");
    refused("end(1)", 4, "too much for end()");
    refused("mean_over(n, max_over(n, 1))", 22, "runs over `n` already");
    refused("mean_over(members(a), max_over(members(b), 1))", 31, "runs over members already");
    refused("spearman(members(a), goodput(it))", 0, "members are no numbers");
    refused("1 + mean_over(members(a), goodput(a))", 4, "expected a function of `it`");
    refused("mean_over(members(a), min_over(n, 1))", 0, "expected a function of `it`");
    refused("mean_over(members(a, 1)", 19, "expected `)` at the end of members(group)");
    refused("é", 0, "there is no function `é`");
    refused("1 + é", 4, "there is no function `é`");
}

#[test]
fn siblings_may_run_over_the_same_axis() {
    assert!(Measure::parse("mean_over(n, 1) / mean_over(n, 2)").is_ok());
    assert!(Measure::parse("mean_over(members, 1)").is_ok(), "an axis of that name");
    assert!(Measure::parse("mean_over(members(a), min_over(n, goodput(it) / goodput(a)))").is_ok());
}

#[test]
fn names_may_hold_what_names_hold() {
    for text in [
        "goodput(backup.1)",
        "goodput(S1-R1)",
        "goodput( 3 )",
        "goodput('a (b), c')",
        "goodput(\"a=b\")",
        "path(T, relay:7)",
        "goodput(T)[c=ledbat++, paths=direct+R, f=2.5, on=true]",
        "goodput(T)[delay='5 ms', 'an axis'=1]",
        "goodput(été)",
    ] {
        assert!(Measure::parse(text).is_ok(), "{text}: {:?}", Measure::parse(text));
    }
}

#[test]
fn too_deep_and_too_long_is_refused() {
    let says = |text: &str, what: &str| {
        let error = Measure::parse(text).expect_err("refused");
        assert!(error.what.contains(what), "{}", error.what);
    };
    says(&"(".repeat(4000), "deeper than 64");
    says(&"-".repeat(4000), "deeper than 64");
    says(&"max(".repeat(1000), "deeper than 64");
    says(&format!("1{}", "+1".repeat(1000)), "deeper than 64");
    says(&format!("end(){}", "[a=1]".repeat(500)), "deeper than 64");
    says(&" ".repeat(MAX_TEXT_LEN + 1), "bytes are more than anybody reads");
    assert!(Measure::parse(&format!("1{}", "+1".repeat(60))).is_ok());
}

proptest! {
    #[test]
    fn anything_is_read_or_refused_within_its_text(text in "(goodput|mean_over|max|[a-z(),=+*/ \\[\\]0-9.'-]){0,40}") {
        if let Err(error) = Measure::parse(&text) {
            prop_assert!(error.at <= text.len());
            prop_assert!(text.is_char_boundary(error.at));
        }
    }

    #[test]
    fn any_unicode_is_read_or_refused(text in "\\PC{0,60}") {
        if let Err(error) = Measure::parse(&text) {
            prop_assert!(text.is_char_boundary(error.at));
        }
    }
}
