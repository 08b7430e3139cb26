"""Canaille, a provider that companies run, with one user, one group and one client; for ``.venv/provider`` only.

``python canaille_process.py PORT CLIENT_ID CLIENT_SECRET REDIRECT_URI`` prints its address once it listens.
"""

from __future__ import annotations

import datetime as dt
import os
import sys

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "true"  # on the loopback address nobody listens in

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server

port, client_id, client_secret, redirect_uri = int(sys.argv[1]), *sys.argv[2:]

app = create_app(
    {
        "SECRET_KEY": "only for tests",
        "SERVER_NAME": f"127.0.0.1:{port}",
        "PREFERRED_URL_SCHEME": "http",
        "CANAILLE": {"DATABASE": "memory", "JAVASCRIPT": False},
        "CANAILLE_OIDC": {
            "ACTIVE_JWKS": [RSAKey.generate_key(2048, auto_kid=True).as_dict(private=True)],
            "TRUSTED_DOMAINS": [],  # people are asked for consent, as they are for a client elsewhere
        },
    }
)
with app.app_context(), Backend.instance.session():
    ada = models.User(
        user_name="ada",
        display_name="ada",
        formatted_name="Ada Lovelace",
        family_name="Lovelace",
        emails=["ada@example.org"],
        password="correct horse battery staple",
    )
    Backend.instance.save(ada)
    Backend.instance.save(models.Group(display_name="ml-vision", members=[ada]))
    client = models.Client(
        client_id=client_id,
        client_secret=client_secret,
        client_name="Fairpool",
        client_uri="http://127.0.0.1",
        client_id_issued_at=dt.datetime.now(dt.UTC),
        redirect_uris=[redirect_uri],
        grant_types=["authorization_code"],
        response_types=["code"],
        scope=["openid", "profile", "email", "groups"],
        token_endpoint_auth_method="client_secret_basic",
    )
    Backend.instance.save(client)
    client.audience = [client]
    Backend.instance.save(client)

listening = make_server("127.0.0.1", port, app, threaded=True)
sys.stdout.write(f"http://127.0.0.1:{port}\n")
sys.stdout.flush()
listening.serve_forever()
