//! The console: pages for people, as a browser gets them.

mod browser;
mod chromium;
mod estate;
mod pages;
mod rights;
mod sessions;
