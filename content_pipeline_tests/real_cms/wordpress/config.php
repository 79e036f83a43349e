<?php
// The settings of one WordPress under test; what differs from run to run stands in the environment.
$folder = getenv( 'WORDPRESS_UNDER_TEST' );
define( 'DB_NAME', 'wordpress' );
define( 'DB_USER', 'wordpress' );
define( 'DB_PASSWORD', 'wordpress' );
define( 'DB_HOST', "localhost:$folder/db.sock" );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );
define( 'WP_CONTENT_DIR', "$folder/wp-content" );
define( 'WP_ENVIRONMENT_TYPE', 'local' ); // application passwords over plain http
define( 'WP_HTTP_BLOCK_EXTERNAL', true ); // never leave loopback
define( 'DISABLE_WP_CRON', true );
define( 'AUTOMATIC_UPDATER_DISABLED', true );
foreach ( array( 'AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT', 'LOGGED_IN_SALT', 'NONCE_SALT' ) as $name ) {
	define( $name, sha1( $name . $folder ) );
}
$table_prefix = 'wp_';
defined( 'ABSPATH' ) || define( 'ABSPATH', __DIR__ . '/' );
require_once ABSPATH . 'wp-settings.php';
