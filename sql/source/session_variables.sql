-- Some variables of this session, as the server shows them.
SHOW SESSION VARIABLES WHERE Variable_name IN %s;
