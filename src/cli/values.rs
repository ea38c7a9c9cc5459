//! Words of flags for types of other modules, which know nothing of the command line.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::diagnostic::Format;
use crate::forge::Provider;
use crate::git::VerifyMode;
use crate::http::OnGap;
use crate::masking::StoredExtent;
use crate::reconcile::{OnRewrite, OnStale, WriteMode};
use crate::telemetry::LogFormat;

/// Implements [`ValueEnum`] by a table: variant, word, help.
macro_rules! words {
    ($type:ty: $($variant:ident $word:literal $help:literal),* $(,)?) => {
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self::$variant),*]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                Some(match self {
                    $(Self::$variant => PossibleValue::new($word).help($help)),*
                })
            }
        }
    };
}

words!(Format:
    Human "human" "For people, with the lines and what is wrong in them",
    Json "json" "One JSON object",
    Github "github" "Workflow commands of GitHub Actions: annotations on the lines",
    Gitlab "gitlab" "A code quality report of GitLab",
    Sarif "sarif" "SARIF 2.1.0",
    Junit "junit" "JUnit XML",
);

words!(OnGap:
    Refuse "refuse" "Refuse certificates whose status is unknown",
    Allow "allow" "Accept them, and log a warning",
);

words!(Provider:
    Github "github" "GitHub, also Enterprise",
    Gitlab "gitlab" "GitLab",
    Gitea "gitea" "Gitea",
    Forgejo "forgejo" "Forgejo",
    Bitbucket "bitbucket" "Bitbucket Cloud",
    BitbucketDc "bitbucket-dc" "Bitbucket Data Center",
);

words!(VerifyMode:
    Off "off" "None",
    Head "head" "The head of the branch",
    Range "range" "Every commit that no verified one contains; the head alone where none is verified yet",
);

words!(StoredExtent:
    All "all" "All, but what a mask covers",
    Mentioned "mentioned" "Those that rules mention of the commit that answers",
    None "none" "None",
);

words!(LogFormat:
    Text "text" "A line for people",
    Json "json" "A JSON object a line",
);

words!(WriteMode:
    Off "off" "Refuse it: groups change only by commits",
    Commit "commit" "Commit it to the branch",
    Propose "propose" "Commit it to a branch of its own, for review",
);

words!(OnRewrite:
    Follow "follow" "Follow it, and report it",
    Hold "hold" "Wait until an operator resumes, or the branch returns",
);

words!(OnStale:
    Serve "serve" "Answer, with a header that reports it",
    Unready "unready" "Answer likewise, and fail the readiness probe",
    Refuse "refuse" "Refuse to answer",
);
