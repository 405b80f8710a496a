"""L3: a private folder for every agent: mirror layers below, change detection above."""
