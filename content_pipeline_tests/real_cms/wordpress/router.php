<?php
// For `php -S`: files are served as they are, WordPress answers for the rest; every request is logged.
$root = $_SERVER['DOCUMENT_ROOT'];
$path = rawurldecode( (string) parse_url( $_SERVER['REQUEST_URI'], PHP_URL_PATH ) );
$asked = "{$_SERVER['REQUEST_METHOD']} $path\n";
file_put_contents( getenv( 'WORDPRESS_UNDER_TEST' ) . '/requests.log', $asked, FILE_APPEND | LOCK_EX );
$file = realpath( $root . $path );
if ( false !== $file && is_dir( $file ) ) {
	$file = realpath( "$file/index.php" );
}
$inside = false !== $file && is_file( $file ) && str_starts_with( $file, realpath( $root ) . '/' );
if ( $inside && ! str_ends_with( $file, '.php' ) ) {
	return false;
}
$script = $inside ? $file : "$root/index.php";
$_SERVER['SCRIPT_FILENAME'] = $script;
$_SERVER['SCRIPT_NAME']     = substr( $script, strlen( $root ) );
$_SERVER['PHP_SELF']        = $_SERVER['SCRIPT_NAME'];
chdir( dirname( $script ) );
require $script;
