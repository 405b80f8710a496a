"""A small process that starts what runs in sandboxes.

Forking the server itself would copy its page tables for each command and is not safe beside its threads. The server
side is `client`; everything else here runs in the launcher, which has the standard library and nothing else.
"""
