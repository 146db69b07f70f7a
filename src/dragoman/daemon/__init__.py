"""The life of the daemon's process: endpoints, connections, apps, its end."""
