"""The table in a browser: play, watch, replay and review; see ``docs/table.md``.

`archie_env.table.session.Session` is one sitting without any transport, `archie_env.table.server` its door on the loopback
interface, and `archie_env.table.export` makes one HTML file of finished hands.
"""
