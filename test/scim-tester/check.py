# Runs scim2-tester, a suite of others, against an endpoint, and prints the result of each check as a line of JSON.
#
#   SCIM_URL=... SCIM_TOKEN=... python check.py
import json
import os

from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import check_server

client = Client(
    base_url=os.environ["SCIM_URL"],
    headers={"Authorization": f"Bearer {os.environ['SCIM_TOKEN']}"},
    timeout=30,
)
for result in check_server(SyncSCIMClient(client)):
    print(
        json.dumps(
            {
                "status": result.status.name,
                "title": result.title,
                "resource": str(result.resource_type or ""),
                "reason": str(result.reason or ""),
            }
        )
    )
