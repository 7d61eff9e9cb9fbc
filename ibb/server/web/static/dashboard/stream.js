// Overviews as the server tells them by itself, for as long as somebody wants them.

const RETRY_MS = 2000;

/**
 * Have *tell* called with each overview, as JSON, and with null where the stream broke.
 *
 * It is tried again for ever: a browser reconnects by itself where a connection breaks, not where
 * the server says no. Returns what ends it.
 */
export function stream(tell) {
  let source = null;
  let retry = 0;
  const open = () => {
    source = new EventSource("/api/live");
    source.addEventListener("overview", (event) => tell(event.data));
    source.onerror = () => {
      tell(null);
      if (source.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS);
    };
  };
  open();
  return () => {
    clearTimeout(retry);
    source.close();
  };
}
