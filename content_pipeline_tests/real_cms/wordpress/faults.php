<?php
// A must-use plugin that breaks what WordPress answers once a page is stored, as bad plugins do.
// FAULTS.json beside the content folder maps the beginning of a slug to a fault; what struck is logged.
add_action(
	'wp_after_insert_post',
	function ( $id, $post ) {
		$file   = dirname( WP_CONTENT_DIR ) . '/FAULTS.json';
		$faults = is_file( $file ) ? json_decode( file_get_contents( $file ), true ) : array();
		foreach ( $faults as $slug => $fault ) {
			if ( str_starts_with( $post->post_name, $slug ) ) {
				file_put_contents( "$file.log", "$fault\n", FILE_APPEND | LOCK_EX );
				break_answer( $fault );
			}
		}
	},
	10,
	2
);

function break_answer( string $fault ): void {
	switch ( $fault ) {
		case 'fatal':
			undefined_function_of_a_bad_plugin();
			break;
		case 'exit':
			status_header( 502 );
			exit( '<html><body>Bad gateway</body></html>' );
		case 'login':
			header( 'Content-Type: text/html' );
			exit( '<html><body>Please log in</body></html>' );
		case 'noise':
			echo "Notice: something happened\n";
			break;
		case 'slow':
			sleep( 3 );
	}
}
