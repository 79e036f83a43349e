<?php
// Installs WordPress without a browser: php install.php DOCROOT URL OUT.json
// OUT.json: {"users": {login: application password}, "version": "6.1"}
[ , $docroot, $url, $out ] = $argv;
$_SERVER['HTTP_HOST']       = preg_replace( '#^https?://#', '', $url );
$_SERVER['REQUEST_URI']     = '/';
$_SERVER['REQUEST_METHOD']  = 'GET';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
define( 'WP_INSTALLING', true );
require "$docroot/wp-load.php";
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
add_filter( 'pre_wp_mail', '__return_false' );
wp_install( 'Under test', 'admin', 'admin@example.test', true, '', bin2hex( random_bytes( 12 ) ) );
update_option( 'siteurl', $url );
update_option( 'home', $url );
update_option( 'permalink_structure', '/%postname%/' );
update_option( 'wp_page_for_privacy_policy', 0 ); // it would be any page with that id once emptied
$GLOBALS['wp_rewrite']->init();
flush_rewrite_rules( false );
$users = array();
foreach ( array( 'admin' => 'administrator', 'pipeline' => 'editor', 'person' => 'editor', 'author' => 'author' ) as $login => $role ) {
	$user = get_user_by( 'login', $login );
	$id   = $user ? $user->ID : wp_insert_user(
		array(
			'user_login' => $login,
			'user_pass'  => bin2hex( random_bytes( 12 ) ),
			'user_email' => "$login@example.test",
			'role'       => $role,
		)
	);
	[ $password ]    = WP_Application_Passwords::create_new_application_password( $id, array( 'name' => 'tests' ) );
	$users[ $login ] = $password;
}
file_put_contents( $out, json_encode( array( 'users' => $users, 'version' => $GLOBALS['wp_version'] ) ) );
