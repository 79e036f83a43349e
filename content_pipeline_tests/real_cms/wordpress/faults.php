<?php
// A must-use plugin that breaks what WordPress answers once a page is stored, as bad plugins do.
// FAULTS.json beside the content folder: {"fault": "fatal", "match": "slug prefix", "on": "create"}
add_action(
	'wp_after_insert_post',
	function ( $id, $post, $update ) {
		$plan = json_decode( (string) @file_get_contents( dirname( WP_CONTENT_DIR ) . '/FAULTS.json' ), true );
		if ( ! $plan || ! str_starts_with( $post->post_name, $plan['match'] ) ) {
			return;
		}
		if ( $plan['on'] !== ( $update ? 'update' : 'create' ) && 'both' !== $plan['on'] ) {
			return;
		}
		switch ( $plan['fault'] ) {
			case 'fatal':
				undefined_function_of_a_bad_plugin();
				break;
			case 'exit':
				status_header( 502 );
				exit( '<html><body>Bad gateway</body></html>' );
			case 'noise':
				echo "Notice: something happened\n";
				break;
			case 'slow':
				sleep( $plan['seconds'] );
				break;
			case 'login':
				header( 'Content-Type: text/html' );
				exit( '<html><body>Please log in</body></html>' );
		}
	},
	10,
	3
);
