<?php
/**
 * Plugin Name: Content Pipeline Guard
 * Description: Makes creating a page idempotent and replacing one conditional, for content_pipeline.
 * Version: 1.0.0
 * Requires at least: 5.7
 * Requires PHP: 7.4
 * License: MIT
 *
 * Copy this one file into wp-content/mu-plugins/. It stores nothing and changes no page by itself:
 *
 * - A create that names its page in the header X-Content-Pipeline-Key is refused with 409 while any
 *   page, the trash included, holds that key's mark, and when its address is taken.
 * - An update or removal with If-Match is refused with 412 unless the page is at that version.
 *   Versions stand in the ETag of an answer and in the field content_pipeline_version of a page.
 * - A search with content_pipeline_or_slug finds pages by mark or slug at once.
 *
 * Both refusals hold against requests of the same moment: a lock of the database is taken before
 * the look and kept until the request is over. Requests without these headers pass untouched.
 */

namespace ContentPipeline\Guard;

defined( 'ABSPATH' ) || exit;

const TYPES       = array( 'pages' => 'page', 'posts' => 'post' );
const STATUSES    = array( 'publish', 'future', 'draft', 'pending', 'private', 'trash' );
const KEY_PATTERN = '/^[A-Za-z0-9_.-]{1,64}$/D';

/** Seconds a request waits for another one of the same page; a page is written in a tenth of one. */
const LOCK_S = 10;

/** A digest of all that an editor can change about a page. */
function version_of( int $id ): string {
	global $wpdb;
	$row = $wpdb->get_row(
		$wpdb->prepare(
			"SELECT post_title, post_content, post_excerpt, post_name, post_status, post_parent
			FROM $wpdb->posts WHERE ID = %d",
			$id
		),
		ARRAY_N
	);
	return $row ? sha1( wp_json_encode( $row ) ) : '';
}

/** Take a lock that ends with the request; a WP_Error when another request holds on to it. */
function lock( string $what ) {
	global $wpdb;
	$name  = 'cp:' . sha1( DB_NAME . $wpdb->prefix . $what );
	$taken = $wpdb->get_var( $wpdb->prepare( 'SELECT GET_LOCK(%s, %d)', $name, LOCK_S ) );
	return '1' === (string) $taken ? true : new \WP_Error(
		'content_pipeline_busy',
		'Another request writes the same page.',
		array( 'status' => 503 )
	);
}

/**
 * The id of a page that holds the mark of $key, in whatever status; 0 without one.
 *
 * BINARY, here and below: a comparison by collation takes five times as long.
 */
function holder_of( string $key ): int {
	global $wpdb;
	$statuses = "'" . implode( "','", STATUSES ) . "'";
	return (int) $wpdb->get_var(
		$wpdb->prepare(
			"SELECT ID FROM $wpdb->posts WHERE post_status IN ($statuses) AND post_content LIKE BINARY %s LIMIT 1",
			'%' . $wpdb->esc_like( "<!-- cp:key=$key " ) . '%'
		)
	);
}

/** Refuse a second page of one key, and a page at an address in use. */
function check_create( string $key, string $type, \WP_REST_Request $request ) {
	if ( ! preg_match( KEY_PATTERN, $key ) ) {
		return new \WP_Error( 'content_pipeline_bad_key', 'Not a key.', array( 'status' => 400 ) );
	}
	$slug   = sanitize_title( (string) $request['slug'] );
	$parent = (int) $request['parent'];
	// Always in this order: two requests can never wait for each other.
	foreach ( array( "key $key", "slug $type $slug" ) as $what ) {
		$locked = lock( $what );
		if ( is_wp_error( $locked ) ) {
			return $locked;
		}
	}
	$holder = holder_of( $key );
	if ( $holder ) {
		return new \WP_Error(
			'content_pipeline_known_key',
			'A page with this key exists.',
			array( 'status' => 409, 'existing_id' => $holder )
		);
	}
	if ( '' !== $slug && wp_unique_post_slug( $slug, 0, 'publish', $type, $parent ) !== $slug ) {
		return new \WP_Error( 'content_pipeline_taken', 'The address is in use.', array( 'status' => 409 ) );
	}
	return null;
}

/** Refuse a write over anything but the version that its sender saw. */
function check_version( int $id, string $wanted ) {
	$locked = lock( "page $id" );
	if ( is_wp_error( $locked ) ) {
		return $locked;
	}
	$held = version_of( $id );
	// Of a page that is gone WordPress itself tells.
	return '' === $held || trim( $wanted, '"' ) === $held ? null : new \WP_Error(
		'content_pipeline_changed',
		'The page is not what it was.',
		array( 'status' => 412 )
	);
}

/**
 * Look at a request before WordPress acts on it. It has passed the permission check by then, so
 * nobody without rights learns which keys exist.
 */
function before( $result, \WP_REST_Request $request ) {
	if ( null !== $result || ! preg_match( '#^/wp/v2/(pages|posts)(?:/(\d+))?$#D', $request->get_route(), $found ) ) {
		return $result;
	}
	$method = $request->get_method();
	$key    = $request->get_header( 'x_content_pipeline_key' );
	$wanted = $request->get_header( 'if_match' );
	$id     = (int) ( $found[2] ?? 0 );
	if ( 'POST' === $method && ! $id && null !== $key ) {
		return check_create( $key, TYPES[ $found[1] ], $request );
	}
	if ( 'GET' !== $method && $id && null !== $wanted ) {
		return check_version( $id, $wanted );
	}
	return null;
}
add_filter( 'rest_dispatch_request', __NAMESPACE__ . '\before', 10, 2 );

/** Tell every client that the guard is here. */
add_filter(
	'rest_post_dispatch',
	function ( $response ) {
		if ( $response instanceof \WP_REST_Response ) {
			$response->header( 'X-Content-Pipeline-Guard', '1' );
			if ( 503 === $response->get_status() && 'content_pipeline_busy' === ( $response->get_data()['code'] ?? '' ) ) {
				$response->header( 'Retry-After', '2' );
			}
		}
		return $response;
	}
);

add_action(
	'rest_api_init',
	function () {
		register_rest_field(
			array_values( TYPES ),
			'content_pipeline_version',
			array(
				'get_callback' => fn( $page ) => version_of( (int) $page['id'] ),
				'schema'       => array( 'type' => 'string', 'context' => array( 'edit' ), 'readonly' => true ),
			)
		);
		register_rest_route(
			'content-pipeline/v1',
			'/guard',
			array(
				'methods'             => 'GET',
				'callback'            => fn() => array( 'version' => '1.0.0', 'wordpress' => get_bloginfo( 'version' ) ),
				'permission_callback' => fn() => current_user_can( 'edit_pages' ),
			)
		);
		foreach ( TYPES as $type ) {
			add_filter( "rest_{$type}_query", __NAMESPACE__ . '\let_slugs_count', 10, 2 );
			add_filter( "rest_prepare_{$type}", __NAMESPACE__ . '\name_version', 10, 2 );
		}
	}
);

function name_version( $response, $post ) {
	$response->header( 'ETag', '"' . version_of( $post->ID ) . '"' );
	return $response;
}

/** A search by mark that is content with one of some slugs instead. */
function let_slugs_count( array $args, \WP_REST_Request $request ): array {
	$slugs = wp_parse_slug_list( (string) $request['content_pipeline_or_slug'] );
	if ( $slugs ) {
		$args['content_pipeline_or_slug'] = $slugs;
	}
	return $args;
}

add_filter(
	'posts_search',
	function ( string $search, \WP_Query $query ): string {
		global $wpdb;
		$slugs = $query->get( 'content_pipeline_or_slug' );
		if ( ! is_array( $slugs ) || ! $slugs || '' === $search ) {
			return $search;
		}
		$places = implode( ',', array_fill( 0, count( $slugs ), '%s' ) );
		return $wpdb->prepare(
			" AND ( $wpdb->posts.post_content LIKE BINARY %s OR $wpdb->posts.post_name IN ( $places ) )",
			'%' . $wpdb->esc_like( (string) $query->get( 's' ) ) . '%',
			...$slugs
		);
	},
	10,
	2
);
