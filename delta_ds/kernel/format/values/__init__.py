"""Values as logs and data files hold them: partition values, statistics, variants, deletion vectors."""
