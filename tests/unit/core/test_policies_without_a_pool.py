"""What is left of a policy when one of its pools goes."""

from fairpool.core.ids import PolicyId, PoolId
from fairpool.core.policies import Policy, Subject


def test_all_of_its_other_pools_stay_in_their_order() -> None:
    a, b, c, d = map(PoolId, "abcd")
    policy = Policy(id=PolicyId("wide"), pool=a, also=(b, c, d), subject=Subject.parse("team:t"))
    assert policy.without(a) == Policy(id=policy.id, pool=b, also=(c, d), subject=policy.subject)
    assert policy.without(c) == Policy(id=policy.id, pool=a, also=(b, d), subject=policy.subject)


def test_nothing_is_left_of_a_policy_on_that_pool_alone() -> None:
    assert Policy(id=PolicyId("x"), pool=PoolId("a"), subject=Subject.parse("team:t")).without(PoolId("a")) is None
