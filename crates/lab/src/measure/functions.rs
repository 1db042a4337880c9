//! Which functions there are and what each takes. What they mean stands in `docs/lab.md`.

/// What stands at a place among the arguments, and how it is called in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    Name(&'static str),
    Value(&'static str),
    Over,
    Variant,
}

/// A function's name and what it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) function: Function,
    pub(super) parameters: &'static [Parameter],
    /// How many of them must be there.
    pub(super) needed: usize,
}

impl Signature {
    /// How many arguments the function takes at most.
    pub(super) const fn most(&self) -> usize {
        match self.function {
            Function::Min | Function::Max => usize::MAX,
            _ => self.parameters.len(),
        }
    }

    /// What stands at `place`; min and max repeat their last.
    pub(super) fn parameter(&self, place: usize) -> Option<Parameter> {
        let last = self.parameters.len().checked_sub(1)?;
        (place < self.most()).then(|| self.parameters.get(place.min(last)).copied())?
    }

    /// How it is written, for messages: `path(transfer, path, from second?, to second?)`.
    pub(super) fn usage(&self) -> String {
        let written: Vec<String> = self
            .parameters
            .iter()
            .enumerate()
            .map(|(place, parameter)| {
                let what = match parameter {
                    Parameter::Name(what) | Parameter::Value(what) => what,
                    Parameter::Over => "axis or members(group)",
                    Parameter::Variant => "[axis=value]",
                };
                format!("{what}{}", if place < self.needed { "" } else { "?" })
            })
            .collect();
        let more = if self.most() == usize::MAX { ", …" } else { "" };
        format!("{}({}{more})", self.name, written.join(", "))
    }
}

const TRANSFER: Parameter = Parameter::Name("transfer");
const PATH: Parameter = Parameter::Name("path");
const REQUESTS: Parameter = Parameter::Name("requests");
const GATEWAYS: Parameter = Parameter::Name("gateways");
const FROM_NODE: Parameter = Parameter::Name("from node");
const TO_NODE: Parameter = Parameter::Name("to node");
const FROM: Parameter = Parameter::Value("from second");
const TO: Parameter = Parameter::Value("to second");
const PERCENTILE: Parameter = Parameter::Value("percentile");
const RATE: Parameter = Parameter::Value("Mbit/s");
const SECONDS: Parameter = Parameter::Value("seconds");
const MEASURE: Parameter = Parameter::Value("measure");

macro_rules! signatures {
    ($($name:literal $function:ident [$($parameter:expr),*] $needed:literal;)*) => {
        /// A function of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Function {
            $($function),*
        }

        /// Every function of the language.
        pub(super) const SIGNATURES: &[Signature] = &[$(Signature {
            name: $name,
            function: Function::$function,
            parameters: &[$($parameter),*],
            needed: $needed,
        }),*];
    };
}

signatures! {
    "goodput" Goodput [TRANSFER, FROM, TO] 1;
    "path" Path [TRANSFER, PATH, FROM, TO] 2;
    "share" Share [TRANSFER, PATH, FROM, TO] 2;
    "window" Window [TRANSFER, PATH, FROM, TO] 2;
    "rtt" Rtt [TRANSFER, PATH, FROM, TO] 2;
    "completion" Completion [TRANSFER] 1;
    "dropped_at" DroppedAt [TRANSFER, PATH] 2;
    "deviation" Deviation [TRANSFER, FROM, TO] 1;
    "settles" Settles [TRANSFER, Parameter::Value("part"), Parameter::Value("last seconds")] 2;
    "reaches" Reaches [TRANSFER, RATE, FROM] 2;
    "fairness" Fairness [TRANSFER, FROM, TO] 1;
    "fairness_worst" FairnessWorst [TRANSFER, SECONDS, FROM, TO] 2;
    "least" Least [TRANSFER, FROM, TO] 1;
    "most" Most [TRANSFER, FROM, TO] 1;
    "below" Below [TRANSFER, RATE, FROM, TO] 2;
    "losses" Losses [TRANSFER] 1;
    "reorder" Reorder [TRANSFER] 1;
    "usable" Usable [TRANSFER, FROM, TO] 1;
    "opened" Opened [TRANSFER, Parameter::Value("by second")] 1;
    "abroad" Abroad [TRANSFER] 1;
    "base_rtt" BaseRtt [TRANSFER] 1;
    "requests" Requests [REQUESTS, PERCENTILE, FROM, TO] 2;
    "stretch" Stretch [REQUESTS, PERCENTILE, Parameter::Variant, FROM, TO] 3;
    "finished" Finished [REQUESTS, FROM, TO] 1;
    "utilisation" Utilisation [FROM_NODE, TO_NODE, FROM, TO] 2;
    "queue" Queue [FROM_NODE, TO_NODE, FROM, TO] 2;
    "drops" Drops [FROM_NODE, TO_NODE, FROM, TO] 2;
    "waits" Waits [GATEWAYS, Parameter::Value("milliseconds")] 2;
    "in_vain" InVain [GATEWAYS] 1;
    "refused" Refused [GATEWAYS] 1;
    "found" Found [GATEWAYS, PERCENTILE] 2;
    "optimum" Optimum [] 0;
    "end" End [] 0;
    "cut" Cut [] 0;
    "axis" Axis [Parameter::Name("axis")] 1;
    "spearman" Spearman [Parameter::Over, MEASURE, MEASURE] 2;
    "mean_over" MeanOver [Parameter::Over, MEASURE] 2;
    "max_over" MaxOver [Parameter::Over, MEASURE] 2;
    "min_over" MinOver [Parameter::Over, MEASURE] 2;
    "percentile_over" PercentileOver [Parameter::Over, PERCENTILE, MEASURE] 3;
    "min" Min [MEASURE] 1;
    "max" Max [MEASURE] 1;
    "abs" Abs [MEASURE] 1;
    "at_least" AtLeast [MEASURE, Parameter::Value("bound")] 2;
    "at_most" AtMost [MEASURE, Parameter::Value("bound")] 2;
    "otherwise" Otherwise [MEASURE, Parameter::Value("value")] 2;
}

/// The function called `name`.
pub(super) fn named(name: &str) -> Option<&'static Signature> {
    SIGNATURES.iter().find(|signature| signature.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_its_row_in_the_guide() {
        let guide = include_str!("../../../../docs/lab.md");
        for signature in SIGNATURES {
            assert!(
                guide.contains(&format!("`{}(", signature.name)),
                "{} is not in docs/lab.md",
                signature.name
            );
        }
    }

    #[test]
    fn usage_marks_what_may_be_left_out() {
        let usage = |name| named(name).map(Signature::usage).expect("a function");
        assert_eq!(usage("goodput"), "goodput(transfer, from second?, to second?)");
        assert_eq!(usage("max"), "max(measure, …)");
        assert_eq!(usage("stretch"), "stretch(requests, percentile, [axis=value], from second?, to second?)");
    }
}
