//! The alarms of a function: it fails, it falls behind, changes were given up.

use super::function::Function;
use super::resources::{FAILURES, attribute, reference, resource};
use crate::tables::node::Node;

/// Maximum age of a change. Streams retain changes for a day, so an hour of delay leaves time to react.
const BEHIND_MS: i64 = 3_600_000;

/// The period of a metric.
const PERIOD_SECONDS: i64 = 300;

/// The topic that alarms notify.
const TOPIC: &str = "Alarms";

/// The definition of an alarm.
struct Alarm {
    suffix: &'static str,
    about: &'static str,
    namespace: &'static str,
    metric: &'static str,
    statistic: &'static str,
    /// Values above this raise the alarm.
    threshold: i64,
    /// For this many consecutive periods.
    periods: i64,
}

const ALARMS: [Alarm; 3] = [
    Alarm {
        suffix: "Errors",
        about: "The function fails.",
        namespace: "AWS/Lambda",
        metric: "Errors",
        statistic: "Sum",
        threshold: 0,
        periods: 3,
    },
    Alarm {
        suffix: "Behind",
        about: "The function is an hour behind; changes are kept for a day.",
        namespace: "AWS/Lambda",
        metric: "IteratorAge",
        statistic: "Maximum",
        threshold: BEHIND_MS,
        periods: 1,
    },
    Alarm {
        suffix: "GivenUp",
        about: "Changes were given up; the queue lists them.",
        namespace: "AWS/SQS",
        metric: "ApproximateNumberOfMessagesVisible",
        statistic: "Maximum",
        threshold: 0,
        periods: 1,
    },
];

/// The topic that all alarms notify.
pub(super) fn topic() -> (String, Node) {
    let topic = Node::map([("Type", Node::text("AWS::SNS::Topic"))]);
    (TOPIC.to_owned(), topic)
}

/// The alarms of a function.
pub(super) fn of(function: &Function) -> Vec<(String, Node)> {
    let resource = |alarm: &Alarm| (function.id(alarm.suffix), alarm.resource(function));
    ALARMS.iter().map(resource).collect()
}

impl Alarm {
    fn resource(&self, function: &Function) -> Node {
        let (name, value) = match self.namespace {
            "AWS/SQS" => ("QueueName", attribute(&function.id(FAILURES), "QueueName")),
            _ => ("FunctionName", reference(&function.name)),
        };
        let dimension = Node::map([("Name", Node::text(name)), ("Value", value)]);
        resource(
            "AWS::CloudWatch::Alarm",
            [
                ("AlarmDescription", Node::text(self.about)),
                ("Namespace", Node::text(self.namespace)),
                ("MetricName", Node::text(self.metric)),
                ("Dimensions", Node::List(vec![dimension])),
                ("Statistic", Node::text(self.statistic)),
                ("Period", Node::Number(PERIOD_SECONDS)),
                ("EvaluationPeriods", Node::Number(self.periods)),
                ("Threshold", Node::Number(self.threshold)),
                ("ComparisonOperator", Node::text("GreaterThanThreshold")),
                ("TreatMissingData", Node::text("notBreaching")),
                ("AlarmActions", Node::List(vec![reference(TOPIC)])),
            ],
        )
    }
}
