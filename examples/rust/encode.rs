// The ids of a text: encode MODEL.gguf TEXT
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

#[link(name = "ggufbpe")]
extern "C" {
    fn ggufbpe_open_file(path: *const c_char, options: *const c_void, tokenizer: *mut *mut c_void, error: *mut c_void) -> c_int;
    fn ggufbpe_encoding_new() -> *mut c_void;
    fn ggufbpe_encode(tokenizer: *const c_void, text: *const u8, size: usize, options: *const c_void, encoding: *mut c_void, error: *mut c_void) -> c_int;
    fn ggufbpe_encoding_count(encoding: *const c_void) -> usize;
    fn ggufbpe_encoding_ids(encoding: *const c_void) -> *const i32;
    fn ggufbpe_encoding_free(encoding: *mut c_void);
    fn ggufbpe_close(tokenizer: *mut c_void);
    fn ggufbpe_error_message(status: c_int) -> *const c_char;
}

/// Ends the program where a call failed. A program that declares ggufbpe_error gets the whole message.
fn check(status: c_int) {
    if status != 0 {
        eprintln!("{}", unsafe { CStr::from_ptr(ggufbpe_error_message(status)) }.to_string_lossy());
        std::process::exit(1);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 3 {
        eprintln!("usage: encode MODEL.gguf TEXT");
        std::process::exit(2);
    }
    let (path, text) = (CString::new(arguments[1].as_str()).unwrap(), arguments[2].as_bytes());
    let mut tokenizer = null_mut();
    unsafe {
        check(ggufbpe_open_file(path.as_ptr(), null(), &mut tokenizer, null_mut()));
        let encoding = ggufbpe_encoding_new();
        check(ggufbpe_encode(tokenizer, text.as_ptr(), text.len(), null(), encoding, null_mut()));
        let ids = std::slice::from_raw_parts(ggufbpe_encoding_ids(encoding), ggufbpe_encoding_count(encoding));
        ids.iter().for_each(|id| println!("{id}"));
        ggufbpe_encoding_free(encoding);
        ggufbpe_close(tokenizer);
    }
}
