// Overviews as the server tells them by itself, for as long as somebody wants them.

const RETRY_MS = 2000;
const SILENT_MS = 10000;  // an overview comes every two seconds

/**
 * Have *tell* called with each overview, as JSON, and with null where the stream broke or is silent.
 *
 * It is tried again for ever: a browser reconnects by itself where a connection breaks, not where
 * the server says no or nothing. Returns what ends it.
 */
export function stream(tell) {
  let source = null;
  let timer = 0;
  let newest = "";
  const later = (act, milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };
  const end = () => {
    clearTimeout(timer);
    source.close();
  };
  const again = () => {
    end();
    tell(null);
    open();
  };
  const open = () => {
    source = new EventSource("/api/live");
    later(again, SILENT_MS);
    source.addEventListener("overview", ({ data }) => {
      if (data === newest) return;  // what a server tells first is no news
      newest = data;
      later(again, SILENT_MS);
      tell(data);
    });
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) later(open, RETRY_MS);
      tell(null);
    };
  };
  open();
  return end;
}
