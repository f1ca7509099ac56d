"""A service's WSGI application on SQLite. MODULE in the environment: where the application is.

SQLite fails a transaction that reads and then writes while another one writes. Services repeat a transaction after a deadlock; to
oslo.db, SQLite has none.
"""
import importlib
import os

from oslo_db import exception
from oslo_db.sqlalchemy import exc_filters
import sqlalchemy.exc


@exc_filters.filters('sqlite', sqlalchemy.exc.OperationalError, '.*database is locked.*')
def locked(error, match, engine_name, is_disconnect):
    raise exception.DBDeadlock(error)


application = importlib.import_module(os.environ['MODULE']).application
