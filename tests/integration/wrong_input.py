"""All the wrong input that the API refuses. One row is one refusal:

the claim, the call, what is sent, status and slug, the field ("" where there is none), words of the message.
"""

from __future__ import annotations


def pool(**fields: object) -> dict[str, object]:
    return {"name": "new", **fields}


def node(**fields: object) -> dict[str, object]:
    return pool(nodes=[{"name": "n", "capacity": {"gpu": 1}, **fields}])


def policy(**fields: object) -> dict[str, object]:
    return {"pool": "gpus", "subject": "team:green", **fields}


def profile(**fields: object) -> dict[str, object]:
    return {"name": "new", "demand": {"gpu": 1}, "pools": ["gpus"], **fields}


def ask(**fields: object) -> dict[str, object]:
    return {"demand": {"gpu": 1}, "subjects": ["team:red"], **fields}


def stack(**fields: object) -> dict[str, object]:
    return {"name": "new", "orchestrator": "local", **fields}


Row = tuple[str, str, object, tuple[int, str], str, str]

INVALID = (422, "invalid-input")
RULES = (422, "invalid-rules")
MALFORMED = (400, "malformed-body")
UNKNOWN = (404, "not-found")
EXISTS = (409, "already-exists")
IN_USE = (409, "in-use")
MEDIA = (415, "unsupported-media-type")
RANGE = "0 to 1000000000000000 with at most three fractional digits"
HUGE = 10**30

# fmt: off
AMOUNTS: list[Row] = [
    ("negative capacity", "POST /pools", pool(capacity={"gpu": -1}), INVALID, "capacity.gpu", "-1: negative"),
    ("negative demand", "POST /requests", ask(demand={"gpu": -1}), INVALID, "demand.gpu", "-1: negative"),
    ("negative reservation", "POST /policies", policy(reserved={"gpu": -1}), INVALID, "reserved.gpu", RANGE),
    ("negative limit", "POST /policies", policy(limit={"gpu": -0.5}), INVALID, "limit.gpu", "-0.5: negative"),
    ("negative weight", "POST /policies", policy(weight=-1), INVALID, "weight", "-1: negative"),
    ("weight of nothing", "POST /policies", policy(weight=0), RULES, "weight", "above 0"),
    ("negative amount of a node", "POST /pools", node(capacity={"gpu": -1}), INVALID, "nodes.0.capacity.gpu",
     "negative"),
    ("negative setting of a step", "POST /runs/{run}/steps", {"name": "s", "settings": {"gpu": -1}}, INVALID,
     "settings.gpu", "negative"),
    ("too precise", "POST /pools", pool(capacity={"gpu": 0.0001}), INVALID, "capacity.gpu", "more than three"),
    ("too precise, as text", "POST /pools", pool(capacity={"gpu": "1.0001"}), INVALID, "capacity.gpu",
     "more than three"),
    ("no number", "POST /pools", pool(capacity={"gpu": "many"}), INVALID, "capacity.gpu", "'many': not a number"),
    ("memory in words", "POST /requests", ask(demand={"memory": "16 gigs"}), INVALID, "demand.memory",
     "'16 gigs': not a number"),
    ("true", "POST /pools", pool(capacity={"gpu": True}), INVALID, "capacity.gpu", "true: not a number"),
    ("null", "POST /pools", pool(capacity={"gpu": None}), INVALID, "capacity.gpu", "null: not a number"),
    ("a list", "POST /pools", pool(capacity={"gpu": [1]}), INVALID, "capacity.gpu", "[1]: not a number"),
    ("NaN", "POST /pools", pool(capacity={"gpu": float("nan")}), MALFORMED, "", "column 37: NaN is no JSON number"),
    ("NaN as text", "POST /pools", pool(capacity={"gpu": "NaN"}), INVALID, "capacity.gpu", "not a finite number"),
    ("infinity", "POST /pools", b'{"name": "n",\n"capacity": {"gpu": -Infinity}}', MALFORMED, "",
     "line 2, column 21: -Infinity is no JSON number"),
    ("infinity as text", "POST /pools", pool(capacity={"gpu": "inf"}), INVALID, "capacity.gpu", "not a finite number"),
    ("over 10^15", "POST /pools", pool(capacity={"gpu": 10**15 + 1}), INVALID, "capacity.gpu", "too large"),
    ("just over 10^15", "POST /pools", pool(capacity={"gpu": "1000000000000000.001"}), INVALID, "capacity.gpu",
     "too large"),
    ("of thirty digits", "POST /requests", ask(demand={"gpu": HUGE}), INVALID, "demand.gpu", "too large"),
    ("of a huge exponent", "POST /pools", b'{"name": "n", "capacity": {"gpu": 1e999999999}}', INVALID, "capacity.gpu",
     "too large"),
    ("of a tiny exponent", "POST /pools", b'{"name": "n", "capacity": {"gpu": 1e-999999999}}', INVALID, "capacity.gpu",
     "more than three"),
    ("of five thousand digits", "POST /pools", b'{"name": "n", "capacity": {"gpu": %s}}' % (b"9" * 5000), MALFORMED, "",
     "column 35: a number with too many digits"),
    ("one and a half GPUs", "POST /requests", ask(demand={"gpu": 1.5}), INVALID, "demand.gpu", "a fraction below one"),
    ("one and a half GPUs in the second part", "POST /requests", {"parts": [{"gpu": 1}, {"gpu": 1.5}]}, INVALID,
     "parts.1.gpu", "a fraction below one"),
    ("one and a half GPUs in a profile", "POST /profiles", profile(demand={"gpu": 1.5}), INVALID, "demand.gpu",
     "a fraction below one"),
    ("one and a half GPUs, only checked", "POST /requests:check", ask(demand={"gpu": 1.5}), INVALID, "demand.gpu",
     "1.5"),
    ("profile of nothing", "POST /profiles", profile(demand={}), RULES, "demand", "asks for something"),
    ("request without a demand", "POST /requests", {"subjects": ["team:red"]}, INVALID, "demand", "missing"),
    ("request of a demand and parts", "POST /requests", ask(parts=[{"gpu": 1}]), INVALID, "parts", "either"),
    ("request of a node count and parts", "POST /requests", {"parts": [{"gpu": 1}], "node_count": 2}, INVALID, "parts",
     "either"),
    ("request of no parts", "POST /requests", {"parts": []}, INVALID, "parts", "one or more"),
]

KEYS_AND_NAMES: list[Row] = [
    ("empty key", "POST /pools", pool(capacity={"": 1}), INVALID, "capacity", "empty"),
    ("key of 64 characters", "POST /pools", pool(capacity={"k" * 64: 1}), INVALID, "capacity." + "k" * 64, "1 to 63"),
    ("key with a space", "POST /pools", pool(capacity={"a b": 1}), INVALID, "capacity.a b", "'a b' holds characters"),
    ("key with a space, demanded", "POST /requests", ask(demand={"a b": 1}), INVALID, "demand.a b", "letters, digits"),
    ("key with a space, limited", "POST /policies", policy(limit={"a b": 1}), INVALID, "limit.a b", "letters, digits"),
    ("key with a NUL", "POST /pools", pool(capacity={"a\0": 1}), INVALID, "capacity.a\\x00", "holds the character NUL"),
    ("empty name", "POST /pools", {"name": ""}, INVALID, "name", "may not be empty"),
    ("name of 64 characters", "POST /pools", {"name": "p" * 64}, INVALID, "name", "64 characters"),
    ("name with a space", "POST /pools", {"name": "a b"}, INVALID, "name", "pool name 'a b' holds characters"),
    ("name with a slash", "POST /components", {"name": "a/b"}, INVALID, "name", "component name 'a/b'"),
    ("name that moves the cursor", "POST /pools", {"name": "a\x1b[2Jb"}, INVALID, "name", "\\\\x1b"),
    ("name that turns the text around", "POST /stacks", stack(name="a\u202eb"), INVALID, "name", "\\\\u202e"),
    ("name of a node", "POST /pools", node(name="a b"), INVALID, "nodes.0.name", "node name 'a b'"),
    ("name of a request with a line break", "POST /requests", ask(name="a\nb"), INVALID, "name",
     "holds the control character '\\\\n'"),
    ("name of a run that rings", "POST /runs", {"name": "a\ab"}, INVALID, "name", "printable characters on one line"),
    ("description that moves the cursor", "POST /pools", pool(description="a\x1bb"), INVALID, "description",
     "printable"),
    ("label that moves the cursor", "POST /requests", ask(labels={"k": "a\x1bb"}), INVALID, "labels.k", "printable"),
    ("label's key with a line break", "POST /requests", ask(labels={"a\nb": "c"}), INVALID, "labels.a\\nb",
     "printable"),
    ("label of a node with a line break", "POST /pools", node(labels={"k": "\n"}), INVALID, "nodes.0.labels.k",
     "printable"),
    ("subject without a name", "POST /policies", policy(subject="team:"), INVALID, "subject", "may not be empty"),
    ("subject with a space", "POST /policies", policy(subject="team:a b"), INVALID, "subject", "letters, digits"),
    ("subject of an unknown kind", "POST /policies", policy(subject="squad:x"), INVALID, "subject",
     "component, team, user, service-account"),
    ("subject of a request of an unknown kind", "POST /requests", ask(subjects=["team:a", "squad:x"]), INVALID,
     "subjects.1", "'squad' is no kind"),
    ("name that is taken", "POST /pools", {"name": "gpus"}, EXISTS, "name", "pool 'gpus' exists already"),
    ("new name that is taken", "PATCH /pools/gpus", {"name": "small"}, EXISTS, "name", "'small'"),
    ("name of a component that is taken", "POST /components", {"name": "k8s"}, EXISTS, "name", "component 'k8s'"),
    ("name of a stack that is taken", "POST /stacks", stack(name="default"), EXISTS, "name", "stack 'default'"),
    ("name of a profile that is taken", "POST /profiles", profile(name="big"), EXISTS, "name", "profile 'big'"),
]

CONTRADICTIONS: list[Row] = [
    ("reserved over limit", "POST /policies", policy(reserved={"gpu": 2}, limit={"gpu": 1}), RULES, "reserved.gpu",
     "at most 1"),
    ("reserved over limit, updated", "PATCH /policies/{policy}", {"limit": {"gpu": 1}}, RULES, "reserved.gpu",
     "at most 1"),
    ("limit over capacity", "POST /policies", policy(limit={"gpu": 9}), RULES, "limit.gpu", "at most 8"),
    ("reserved over capacity", "POST /policies", policy(reserved={"gpu": 9}), RULES, "reserved.gpu", "at most 8"),
    ("reservations over capacity", "POST /policies", policy(reserved={"gpu": 3}), RULES, "reserved.gpu",
     "add up to 9 (team:red 4, team:blue 2, team:green 3), its capacity is 8"),
    ("reservations over capacity, updated", "PATCH /policies/{policy}", {"reserved": {"gpu": 7}}, RULES, "reserved.gpu",
     "at most 8 in all"),
    ("reserved of a key the pool lacks", "POST /policies", policy(reserved={"tpu": 1}), RULES, "reserved.tpu",
     "possible: gpu, licence"),
    ("limit on a key the pool lacks", "POST /policies", policy(limit={"tpu": 1}), RULES, "limit.tpu", "has no 'tpu'"),
    ("second policy of a subject", "POST /policies", policy(subject="team:red"), EXISTS, "subject",
     "one per subject and pool"),
    ("shrinking below one reservation", "PATCH /pools/gpus", {"capacity": {"gpu": 1}}, RULES, "capacity.gpu",
     "6 or more"),
    ("shrinking below all reservations", "PATCH /pools/gpus", {"capacity": {"gpu": 5}}, RULES, "capacity.gpu",
     "add up to 6 (team:red 4, team:blue 2), its capacity is 5 (possible: 6 or more"),
    ("removing a reserved key", "PATCH /pools/gpus", {"capacity": {"gpu": 0}}, RULES, "capacity.gpu", "6 or more"),
    ("node twice", "POST /pools", pool(nodes=[{"name": "n", "capacity": {}}] * 2), RULES, "nodes", "'n'"),
    ("node of another pool", "POST /pools", node(name="n1"), RULES, "nodes", "belongs to pool 'noded'"),
    ("key of nodes and of the pool", "POST /pools", {**node(), "capacity": {"gpu": 1}}, RULES, "capacity.gpu", "nodes"),
    ("profile of no pools", "POST /profiles", profile(pools=[]), RULES, "pools", "best first"),
    ("deleting the active stack", "DELETE /stacks/default", None, IN_USE, "", "activate another first"),
    ("deleting a component that a stack names", "DELETE /components/local", None, IN_USE, "", "stack default"),
    ("deleting a pool in use", "DELETE /pools/gpus", None, IN_USE, "", "{request}"),
]

UNKNOWN_THINGS: list[Row] = [
    ("pool", "GET /pools/gpu", None, UNKNOWN, "", "did you mean 'gpus'? fairpool pool list"),
    ("pool like nothing there is", "GET /pools/qqq", None, UNKNOWN,
     "", '"help":"fairpool pool list shows what there is"'),
    ("pool of a policy", "POST /policies", policy(pool="gpuss"), UNKNOWN, "pool", "did you mean 'gpus'"),
    ("pool of a request", "POST /requests", ask(pool="gpuss"), UNKNOWN, "pool", "did you mean 'gpus'"),
    ("pool of a profile", "POST /profiles", profile(pools=["gpus", "gpuz"]), UNKNOWN, "pools.1", "did you mean 'gpus'"),
    ("pool of a list of policies", "GET /policies?pool=gpuz", None, UNKNOWN, "pool", "did you mean 'gpus'"),
    ("pool of a list of requests", "GET /requests?pool=gpuz", None, UNKNOWN, "pool", "did you mean 'gpus'"),
    ("pool to change", "PATCH /pools/gpuz", {"backfill": False}, UNKNOWN, "", "no pool 'gpuz'"),
    ("pool to delete", "DELETE /pools/gpuz", None, UNKNOWN, "", "no pool 'gpuz'"),
    ("history of a pool", "GET /pools/gpuz/history", None, UNKNOWN, "", "did you mean 'gpus'"),
    ("node", "PATCH /pools/noded/nodes/n2", {"state": "cordoned"}, UNKNOWN, "", "did you mean 'n1'"),
    ("component", "GET /components/k8", None, UNKNOWN, "", "did you mean 'k8s'"),
    ("component of a policy", "POST /policies", policy(subject="k8"), UNKNOWN, "subject", "did you mean 'k8s'"),
    ("component of a request", "POST /requests", ask(subjects=["component:k8"]), UNKNOWN, "subjects.0",
     "did you mean 'k8s'"),
    ("component of a pool", "POST /pools", pool(components=["k8s", "k9s"]), UNKNOWN, "components.1",
     "did you mean 'k8s'"),
    ("component of a stack", "POST /stacks", stack(orchestrator="loca"), UNKNOWN, "orchestrator",
     "did you mean 'local'"),
    ("step operator of a stack", "POST /stacks", stack(step_operators=["k8"]), UNKNOWN, "step_operators.0", "'k8s'"),
    ("stack", "GET /stacks/defalt", None, UNKNOWN, "", "did you mean 'default'"),
    ("stack to activate", "POST /stacks/defalt/activate", None, UNKNOWN, "", "did you mean 'default'"),
    ("stack of a run", "POST /runs", {"name": "r", "stack": "defalt"}, UNKNOWN, "stack", "did you mean 'default'"),
    ("profile", "GET /profiles/bigg", None, UNKNOWN, "", "did you mean 'big'"),
    ("profile of a request", "POST /requests", {"profile": "bigg"}, UNKNOWN, "profile", "did you mean 'big'"),
    ("profile of a policy", "POST /policies", policy(profiles=["bigg"]), UNKNOWN, "profiles.0", "did you mean 'big'"),
    ("policy", "GET /policies/qqq", None, UNKNOWN, "", "fairpool policy list"),
    ("request", "GET /requests/qqq", None, UNKNOWN, "", "fairpool request list"),
    ("request to explain", "GET /requests/qqq/explain", None, UNKNOWN, "", "no request 'qqq'"),
    ("request to cancel", "POST /requests/qqq/cancel", None, UNKNOWN, "", "no request 'qqq'"),
    ("request to release", "POST /requests/qqq/release", None, UNKNOWN, "", "no request 'qqq'"),
    ("request to renew", "POST /requests/qqq/renew", None, UNKNOWN, "", "no request 'qqq'"),
    ("request to repeat", "POST /requests", ask(retry_of="qqq"), UNKNOWN, "retry_of", "no request 'qqq'"),
    ("run", "GET /runs/qqq", None, UNKNOWN, "", "fairpool runs list"),
    ("run of a list of requests", "GET /requests?run=qqq", None, UNKNOWN, "run", "no run 'qqq'"),
    ("run of a step", "POST /runs/qqq/steps", {"name": "s"}, UNKNOWN, "", "no run 'qqq'"),
    ("step", "PATCH /steps/qqq", {"status": "running"}, UNKNOWN, "", "fairpool runs describe RUN"),
    ("pool by the id of a policy", "GET /pools/{policy}", None, UNKNOWN, "", "no pool '{policy}'"),
    ("policy by the id of a pool", "GET /policies/{pool}", None, UNKNOWN, "", "no policy '{pool}'"),
    ("request by the id of a run", "GET /requests/{run}", None, UNKNOWN, "", "no request '{run}'"),
    ("step by the id of a request", "GET /steps/{request}", None, UNKNOWN, "", "no step '{request}'"),
    ("name with a NUL", "GET /pools/gpus%00", None, (404, "unknown-route"), "", "no name holds"),
    ("name that is no UTF-8", "GET /pools/%ff", None, UNKNOWN, "", "no pool"),
    ("name that moves the cursor", "GET /pools/%1b[2J", None, UNKNOWN, "", "'\\\\x1b[2J'"),
    ("route", "GET /polls", None, (404, "unknown-route"), "", "did you mean /api/v1/pools?"),
    ("route below one", "GET /pools/gpus/nodes", None, (404, "unknown-route"), "", "/api/v1/openapi.json"),
    ("route at the root", "GET //nope", None, (404, "unknown-route"), "", "there is no /nope"),
    ("route with a slash behind", "GET /pools/", None, (404, "unknown-route"), "", "did you mean /api/v1/pools?"),
    ("method", "PUT /pools", {}, (405, "method-not-allowed"), "", "it takes GET, POST"),
    ("method of a collection", "DELETE /requests", None, (405, "method-not-allowed"), "", "it takes GET, POST"),
]

TYPES_AND_WORDS: list[Row] = [
    ("no name", "POST /pools", {}, INVALID, "name", "missing"),
    ("null for a name", "POST /pools", {"name": None}, INVALID, "name", "null: not text"),
    ("number for a name", "POST /pools", {"name": 7}, INVALID, "name", "7: not text"),
    ("list for an object", "POST /pools", pool(capacity=[]), INVALID, "capacity", "[]: not an object"),
    ("text for an object", "POST /pools", pool(capacity="gpu"), INVALID, "capacity", "'gpu': not an object"),
    ("object for a list", "POST /pools", pool(nodes={}), INVALID, "nodes", "{{}}: not a list"),
    ("number for a node", "POST /pools", pool(nodes=[1]), INVALID, "nodes.0", "1: not an object"),
    ("text for a list", "POST /requests", ask(subjects="team:red"), INVALID, "subjects", "'team:red': not a list"),
    ("number for a subject", "POST /policies", policy(subject=5), INVALID, "subject", "5: not text"),
    ("number for a label", "POST /requests", ask(labels={"a": 1}), INVALID, "labels.a", "1: not text"),
    ("yes for true", "POST /pools", pool(backfill="yes"), INVALID, "backfill", "'yes': neither true nor false"),
    ("1 for true", "POST /policies", policy(dedicated=1), INVALID, "dedicated", "1: neither true nor false"),
    ("text for a setting", "PATCH /settings", {"require_policy": "no"}, INVALID, "require_policy", "true or false"),
    ("text for a number", "POST /policies", policy(priority="high"), INVALID, "priority", "'high': not a whole number"),
    ("digits in text for a number", "POST /requests", ask(node_count="2"), INVALID, "node_count",
     "'2': not a whole number"),
    ("true for a number", "POST /requests", ask(node_count=True), INVALID, "node_count", "true: not a whole number"),
    ("a fraction for a number", "POST /policies", policy(priority=1.5), INVALID, "priority", "1.5: not a whole number"),
    ("null for a number", "POST /policies", policy(priority=None), INVALID, "priority", "null: not a whole number"),
    ("priority over the largest", "POST /policies", policy(priority=2**31), INVALID, "priority", "at most 2147483647"),
    ("priority of a request over the largest", "POST /requests", ask(priority=HUGE), INVALID, "priority",
     "at most 2147483647"),
    ("no nodes", "POST /requests", ask(node_count=0), INVALID, "node_count", "1 or more"),
    ("too many nodes", "POST /requests", ask(node_count=1001), INVALID, "node_count", "at most 1000"),
    ("negative grace", "POST /policies", policy(grace_s=-1), INVALID, "grace_s", "0 or more"),
    ("endless grace", "POST /policies", policy(grace_s=HUGE), INVALID, "grace_s", "at most 1000000000"),
    ("negative run time", "POST /policies", policy(min_runtime_s=-1), INVALID, "min_runtime_s", "0 or more"),
    ("endless bypass", "POST /pools", pool(max_bypass_s=HUGE), INVALID, "max_bypass_s", "at most 1000000000"),
    ("run time of nothing", "POST /requests", ask(max_runtime_s=0), INVALID, "max_runtime_s", "1 or more"),
    ("endless run time", "POST /requests", ask(max_runtime_s=HUGE), INVALID, "max_runtime_s", "at most 1000000000"),
    ("time in words", "POST /requests", ask(max_runtime_s="1h"), INVALID, "max_runtime_s", "'1h': not a whole number"),
    ("endless wait", "POST /requests", ask(wait_timeout_s=HUGE), INVALID, "wait_timeout_s", "at most 1000000000"),
    ("lease of nothing", "POST /requests", ask(lease_s=0), INVALID, "lease_s", "1 or more"),
    ("lease of weeks", "POST /requests", ask(lease_s=10**6), INVALID, "lease_s", "at most 86400"),
    ("renewal of nothing", "POST /requests/{request}/renew", {"lease_s": 0}, INVALID, "lease_s", "1 or more"),
    ("ordering", "POST /pools", pool(ordering="random"), INVALID, "ordering", "'fair' or 'fifo'"),
    ("placement", "PATCH /pools/gpus", {"placement": "best"}, INVALID, "placement", "'pack', 'spread' or 'defragment'"),
    ("state of a node", "POST /pools", node(state="broken"), INVALID, "nodes.0.state", "'cordoned'"),
    ("kind of a component", "POST /components", {"name": "c", "kind": "thing"}, INVALID, "kind", "'orchestrator'"),
    ("status of a run", "PATCH /runs/{run}", {"status": "done"}, INVALID, "status", "'completed'"),
    ("index of a step", "POST /runs/{run}/steps", {"name": "s", "index": -1}, INVALID, "index", "0 or more"),
    ("too long a description", "POST /pools", pool(description="x" * 1001), INVALID, "description",
     "at most 1000 characters"),
    ("too long a name of a request", "POST /requests", ask(name="x" * 201), INVALID, "name", "at most 200 characters"),
    ("too many labels", "POST /requests", ask(labels={str(n): "" for n in range(65)}), INVALID, "labels", "at most 64"),
    ("empty idempotency key", "POST /requests", ask(idempotency_key=""), INVALID, "idempotency_key",
     "1 or more characters"),
    ("unknown field", "POST /pools", pool(capcity={}), INVALID, "capcity", "did you mean 'capacity'?"),
    ("unknown field of a node", "POST /pools", node(sate="down"), INVALID, "nodes.0.sate", "did you mean 'state'?"),
    ("unknown field of a policy", "POST /policies", policy(resreved={}), INVALID, "resreved",
     "did you mean 'reserved'?"),
    ("unknown field of one of many", "POST /requests:bulk", {"requests": [ask(), ask(prioriti=1)]}, INVALID,
     "requests.1.prioriti", "did you mean 'priority'?"),
    ("unknown field of a cancellation", "POST /requests/{request}/cancel", {"raeson": ""}, INVALID, "raeson",
     "'reason'"),
    ("what cannot change", "PATCH /policies/{policy}", {"pool": "noded"}, INVALID, "pool",
     "unknown field 'pool'"),
    ("one negative of many", "POST /requests:bulk", {"requests": [ask(), ask(demand={"gpu": -1})]}, INVALID,
     "requests.1.demand.gpu", "negative"),
]

BODIES: list[Row] = [
    ("nothing", "POST /pools", None, MALFORMED, "", "line 1, column 1: there is nothing"),
    ("only blanks", "POST /pools", b" \n", MALFORMED, "", "there is nothing"),
    ("a missing value", "POST /pools", b'{"name": "p",\n "capacity": {"gpu": }}', MALFORMED, "", "line 2, column 22"),
    ("a comma too many", "POST /pools", b'{"name": "p",}', MALFORMED, "", "line 1, column 14"),
    ("single quotes", "POST /pools", b"{'name': 'p'}", MALFORMED, "", "line 1, column 2"),
    ("YAML", "POST /pools", b"name: p\n", MALFORMED, "", "line 1, column 1"),
    ("two values", "POST /pools", b'{"name": "p"}\n{}', MALFORMED, "", "line 2, column 1"),
    ("an end too early", "POST /pools", b'{"name": "p"', MALFORMED, "", "line 1, column 13"),
    ("a key twice", "POST /pools", b'{"name": "p",\n "name": "q"}', MALFORMED, "",
     "line 2, column 2: an object has the key 'name'"),
    ("a key twice, inside", "POST /pools", b'{"name": "p", "capacity": {"gpu": 1, "gpu": 2}}', MALFORMED, "",
     "column 38: an object has the key 'gpu' twice"),
    ("too deep", "POST /pools", b'{"name": ' + b"[" * 40_000, MALFORMED, "", "nested too deeply"),
    ("deep", "POST /components", b'{"name": "c", "config": ' + b'{"a":' * 400 + b"1" + b"}" * 401, INVALID, "",
     "nested too deeply"),
    ("no UTF-8", "POST /pools", b'{"name":\n"\xff"}', MALFORMED, "", "line 2, column 2: not UTF-8"),
    ("half a character", "POST /pools", b'{"name": "p", "capacity": {"\\ud800": 1}}', MALFORMED, "",
     "column 29: half of a character"),
    ("half a character in a label", "POST /requests", ask(labels={"k": "\ud800"}), MALFORMED, "",
     "half of a character"),
    ("a list", "POST /pools", [], INVALID, "", "not an object"),
    ("a word", "POST /pools", "p", INVALID, "", "not an object"),
    ("null", "POST /pools", b"null", INVALID, "", "not an object"),
    ("over the limit", "POST /pools", {"name": "p" * 60_000}, (413, "body-too-large"), "", "at most 52428 are read"),
]

QUERIES: list[Row] = [
    ("unknown parameter", "GET /pools?limt=3", None, INVALID, "limt", "did you mean 'limit'?"),
    ("parameter of another route", "GET /pools?view=all", None, INVALID, "view", "possible: at, limit, cursor"),
    ("parameter twice", "GET /pools?limit=1&limit=2", None, INVALID, "limit", "given 2 times"),
    ("limit of nothing", "GET /requests?limit=0", None, INVALID, "limit", "1 to 1000"),
    ("limit over the largest", "GET /requests?limit=1001", None, INVALID, "limit", "1 to 1000"),
    ("limit in words", "GET /pools?limit=all", None, INVALID, "limit", "'all' is not possible"),
    ("cursor of no page", "GET /requests?cursor=%21", None, INVALID, "cursor", "next_cursor"),
    ("negative cursor", "GET /pools?cursor=-1", None, INVALID, "cursor", "next_cursor"),
    ("endless cursor", "GET /runs?cursor=99999999999999999999", None, INVALID, "cursor", "next_cursor"),
    ("empty cursor", "GET /history?cursor=", None, INVALID, "cursor", "next_cursor"),
    ("view", "GET /requests?view=waiting", None, INVALID, "view", "queued, active, live, all"),
    ("status", "GET /requests?status=Queued", None, INVALID, "status", "'Queued' is no status"),
    ("status beyond the view", "GET /requests?status=released&view=queued", None, INVALID, "status",
     "possible: queued"),
    ("label", "GET /requests?label=x", None, INVALID, "label", "key=value"),
    ("label of runs", "GET /runs?label==x", None, INVALID, "label", "key=value"),
    ("subject", "GET /requests?subject=squad:x", None, INVALID, "subject", "'squad' is no kind"),
    ("subject of policies", "GET /policies?subject=a%20b", None, INVALID, "subject", "'a b'"),
    ("kind", "GET /history?kind=pol", None, INVALID, "kind", "pool, policy"),
    ("place in the history", "GET /history?after=x", None, INVALID, "after", "'x' is not possible"),
    ("place in the events", "GET /events?after=-1", None, INVALID, "after", "'-1' is not possible"),
    ("kind of events", "GET /events?kind=x", None, INVALID, "kind", "pool, policy"),
    ("wait in words", "GET /requests/{request}?wait_s=long", None, INVALID, "wait_s", "0 to 60"),
    ("negative wait", "POST /requests?wait_s=-1", ask(), INVALID, "wait_s", "0 to 60"),
    ("wait of no number", "POST /requests?wait_s=nan", ask(), INVALID, "wait_s", "0 to 60"),
    ("endless wait", "POST /requests?wait_s=inf", ask(), INVALID, "wait_s", "0 to 60"),
    ("version", "GET /requests/{request}?after_version=x", None, INVALID, "after_version", "'x' is not possible"),
    ("perhaps", "POST /pools?dry_run=perhaps", pool(), INVALID, "dry_run", "true, false"),
    ("what becomes of work", "DELETE /pools/small?on_work=kill", None, INVALID, "on_work", "refuse, drain, let-go"),
]
# fmt: on

TABLES = {
    "amount": AMOUNTS,
    "name": KEYS_AND_NAMES,
    "contradiction": CONTRADICTIONS,
    "unknown": UNKNOWN_THINGS,
    "type": TYPES_AND_WORDS,
    "body": BODIES,
    "query": QUERIES,
}
