"""UMIX among scikit-learn's tools: a frame with texts, dates and gaps, a search over eta by the worst group, a pipeline.

Run: python examples/sklearn_pipeline.py

The frame holds 4,000 tickets, some of which are urgent. Most urgent ones come by phone and most others by mail, so the channel
alone is right in 92 % of the rows, and wrong in every urgent mail. Subject and waiting time together tell which ones are urgent.
"""

import numpy as np
import pandas
import sklearn
import torch
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from umix.adapters.sklearn import UMIXClassifier, worst_group_accuracy, worst_group_scorer

torch.set_num_threads(1)  # a net as small as this one is slower with several


def tickets(n: int) -> tuple[pandas.DataFrame, np.ndarray]:
    """The columns of ``n`` tickets, and whether each was urgent."""
    rng = np.random.default_rng(0)
    subject, waited = rng.choice(["order", "refund", "account"], n), rng.normal(0, 1, n)
    urgent = np.where(subject == "refund", waited < 0, waited > 0)
    usual = rng.random(n) < 0.92
    frame = pandas.DataFrame(
        {
            "channel": np.where(urgent == usual, "phone", "mail"),
            "subject": pandas.Categorical(subject),
            "waited": waited,
            "opened": pandas.Timestamp("2025-01-01") + pandas.to_timedelta(rng.integers(0, 365, n), unit="D"),
        }
    )
    frame.loc[rng.random(n) < 0.05, "waited"] = np.nan
    return frame, np.where(urgent, "urgent", "other")


X, y = tickets(4000)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
channel, channel_test = X_train["channel"], X_test["channel"]


def show(name: str, model: UMIXClassifier | Pipeline) -> None:
    """Print the accuracy of ``model`` on all test rows and in its worst group, of channel and label."""
    predicted = model.predict(X_test)
    worst = worst_group_accuracy(y_test, predicted, groups=channel_test)
    print(f"{name:42} average {np.mean(predicted == y_test):.1%}   worst group {worst:.1%}")


# The frame as it is: texts, categories, dates and missing values are read as `umix run` reads a table.
quick = {"epochs": 10, "random_state": 0}
show("erm", UMIXClassifier("erm", threshold="off", **quick).fit(X_train, y_train))
show("umix, nothing known of groups", UMIXClassifier(**quick).fit(X_train, y_train))

# eta is a parameter, and the search gives each fold its share of the groups, which choose the epoch and the best eta.
with sklearn.config_context(enable_metadata_routing=True):
    model = UMIXClassifier(pool="example", length=5, **quick).set_fit_request(groups=True)
    search = GridSearchCV(model, {"eta": [1, 10]}, scoring=worst_group_scorer(), cv=2)
    search.fit(X_train, y_train, groups=channel)
show(f"umix, eta={search.best_params_['eta']} chosen by the worst group", search.best_estimator_)

# The usual pipeline, whose columns come out dense or, where most of them are one-hot, sparse: both are taken.
encode = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["channel", "subject"]), (SimpleImputer(add_indicator=True), ["waited"])
)
pipeline = make_pipeline(encode, UMIXClassifier(eta=10, pool="example", length=5, **quick))
show("umix after a ColumnTransformer", pipeline.fit(X_train, y_train, umixclassifier__groups=channel))

final = pipeline[-1]
heaviest = final.weights_ > np.nanquantile(final.weights_, 0.9)
print("\nTickets that weigh most, by channel and label:")
print(pandas.crosstab(channel[heaviest], y_train[heaviest], colnames=["label"]).to_string())
