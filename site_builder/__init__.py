"""The public site: pages and data files made from plain views. Pure: no AWS, no clock, no network.

``views`` says what goes in, ``site`` has one function per kind of page, ``Page`` is what comes out. The publisher
decides which pages to make anew and where they go.
"""
